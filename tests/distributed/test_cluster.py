"""Clusters of real processes, each a `python -m pipeline train` of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers_cluster import (
    ROOT,
    SECONDS,
    command,
    environment,
    processes_of,
    run,
    train_flags,
)

_LOST_SECONDS = 8
CLUSTERS = {
    "ps": (["--workers=1", "--ps=1", "--evaluator"], "wide_deep", []),
    "ps by strategy": (
        ["--workers=1", "--ps=1"],
        "keras_wide_deep",
        ["--strategy=parameter_server_v1"],
    ),
    "in step": (["--workers=1", "--evaluator"], "wide_deep", []),
    "in step, no chief": (["--nochief", "--workers=2"], "keras_wide_deep", []),
    "chief and evaluator": (["--workers=0", "--evaluator"], "wide_deep", []),
}


def _launch(shape, flags) -> subprocess.Popen:
    return subprocess.Popen(
        command("cluster", *shape, "--", "train", *flags),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _read_until(process: subprocess.Popen, directory, step: int) -> None:
    """Waits until a checkpoint of at least that step is there."""
    end = time.monotonic() + SECONDS
    state = directory / "checkpoint"
    while time.monotonic() < end:
        found = re.findall(r"ckpt-(\d+)", state.read_text()) if state.exists() else []
        if any(int(number) >= step for number in found):
            return
        if process.poll() is not None:
            pytest.fail("\n".join(filter(None, process.communicate()))[-3000:])
        time.sleep(0.1)
    pytest.fail("no checkpoint came")


def _task_process(directory, task_type: str, index: int = 0) -> int:
    for number in processes_of(directory):
        variables = Path(f"/proc/{number}/environ").read_bytes().decode()
        match = re.search(r"TF_CONFIG=([^\0]+)", variables)
        if match:
            task = json.loads(match.group(1))["task"]
            if (task["type"], task["index"]) == (task_type, index):
                return number
    pytest.fail(f"no process of {task_type} {index}")


def _results(directory) -> dict:
    return json.loads((directory / "manifest.json").read_text())["results"]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "model", "flags"), CLUSTERS.values(), ids=CLUSTERS)
def test_a_cluster_trains_and_every_process_ends(
    untrained_job, tmp_path, shape, model, flags
):
    directory = tmp_path / "model"
    given = train_flags(untrained_job, directory, model)
    done = run("cluster", *shape, "--", "train", *given, *flags)
    assert done.returncode == 0, done.stderr[-4000:]
    assert processes_of(directory) == []
    results = _results(directory)
    assert 50 <= results["global_step"] <= 52
    assert 0.3 < results["metrics"]["loss"] < 1.5
    assert list((directory / "eval").glob("events.*"))
    assert all(re.match(r"\[\w+ \d *\] ", line) for line in done.stdout.splitlines())
    # A single machine takes the directory for complete.
    again = run("train", *given)
    assert again.returncode == 0
    assert "reused" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ps", "chief"])
def test_the_rest_ends_when_a_task_is_killed(untrained_job, tmp_path, victim):
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job, directory, "wide_deep", max_steps=1_000_000, checkpoint_steps=200
    )
    process = _launch(["--workers=1", "--ps=1", "--end_seconds=20"], flags)
    try:
        _read_until(process, directory, 200)
        os.kill(_task_process(directory, victim), signal.SIGKILL)
        killed = time.monotonic()
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGKILL
    assert f"{victim} 0 ended with code 137" in said
    assert time.monotonic() - killed < 60
    assert processes_of(directory) == []


@pytest.mark.slow
def test_without_a_launcher_the_others_notice_by_themselves(untrained_job, tmp_path):
    """Also for workers in step, which TensorFlow would let wait for ever."""
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job,
        directory,
        "keras_wide_deep",
        max_steps=1_000_000,
        checkpoint_steps=200,
        lost_seconds=_LOST_SECONDS,
    )
    addresses = _free_addresses(2)
    tasks = []
    for index in range(2):
        value = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        tasks.append(
            subprocess.Popen(
                command("train", *flags),
                cwd=ROOT,
                env=environment(TF_CONFIG=json.dumps(value)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        _read_until(tasks[0], directory, 200)
        tasks[1].kill()
        _, said = tasks[0].communicate(timeout=_LOST_SECONDS + 60)
    finally:
        for task in tasks:
            task.kill()
    assert tasks[0].returncode == 138, said
    assert "worker 1 (127.0.0.1:" in said


def _free_addresses(count):
    from pipeline.cluster import launcher

    return launcher._free_addresses(count)


@pytest.mark.slow
def test_sigterm_saves_and_the_rerun_goes_on(untrained_job, tmp_path):
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job, directory, "wide_deep", max_steps=1_000_000, checkpoint_steps=300
    )
    process = _launch(["--workers=1", "--ps=1", "--evaluator"], flags)
    try:
        _read_until(process, directory, 300)
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 143, said
    assert time.monotonic() - sent < 30
    saved = int(re.search(r"saved at step ([\d,]+)", said).group(1).replace(",", ""))
    assert saved > 300
    assert processes_of(directory) == []
    flags = train_flags(
        untrained_job,
        directory,
        "wide_deep",
        max_steps=saved + 20,
        checkpoint_steps=300,
    )
    done = run("cluster", "--workers=1", "--ps=1", "--", "train", *flags)
    assert done.returncode == 0, done.stderr[-3000:]
    # Until it is saved the worker may take further steps.
    resumed = re.search(r"goes on from step ([\d,]+)", done.stderr).group(1)
    assert saved <= int(resumed.replace(",", "")) < saved + 20
    assert saved + 20 <= _results(directory)["global_step"] <= saved + 22


@pytest.mark.slow
def test_sigterm_ends_workers_in_step(untrained_job, tmp_path):
    """Their servers take SIGTERM for themselves when they start."""
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job, directory, "wide_deep", max_steps=1_000_000, checkpoint_steps=100
    )
    process = _launch(["--workers=1"], flags)
    try:
        _read_until(process, directory, 100)
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 143, said
    assert time.monotonic() - sent < 30
    assert processes_of(directory) == []


@pytest.mark.slow
def test_killing_the_launcher_takes_all_along(untrained_job, tmp_path):
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job, directory, "wide_deep", max_steps=1_000_000, checkpoint_steps=200
    )
    process = _launch(["--workers=1", "--ps=1"], flags)
    try:
        _read_until(process, directory, 200)
    finally:
        process.kill()
    process.communicate(timeout=SECONDS)
    end = time.monotonic() + 20
    while processes_of(directory) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_of(directory) == []


def test_a_missing_task_is_named(untrained_job, tmp_path):
    """A parameter server, which has nobody to serve."""
    address, absent = _free_addresses(2)
    value = {
        "cluster": {"chief": [absent], "ps": [address]},
        "task": {"type": "ps", "index": 0},
    }
    done = run(
        "train",
        *train_flags(untrained_job, tmp_path / "model", "wide_deep", wait_seconds=2),
        TF_CONFIG=json.dumps(value),
    )
    assert done.returncode == 138
    assert f"chief 0 ({absent}) did not appear within 2 seconds" in done.stderr


def test_a_wrong_tf_config_ends_at_once_and_leaves_nothing(untrained_job, tmp_path):
    began = time.monotonic()
    done = run(
        "train",
        *train_flags(untrained_job, tmp_path / "model", "wide_deep"),
        TF_CONFIG='{"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}',
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: TF_CONFIG: task is missing")
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - began < 5
    assert not (tmp_path / "model").exists()
