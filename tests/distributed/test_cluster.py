"""Clusters of real processes, each a `python -m pipeline train` of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import time

import pytest
from helpers_cluster import (
    SECONDS,
    await_checkpoint,
    await_nobody,
    free_addresses,
    launched,
    processes_of,
    run,
    task_process,
    train_flags,
    weights,
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


def _endless(job, directory, model="wide_deep", **changes) -> list[str]:
    """Returns flags of a training that does not end by itself.

    Without evaluations in the leader, which SIGTERM would end at once.
    """
    steps = {"max_steps": 1_000_000, "eval_steps": 1_000_000, "checkpoint_steps": 200}
    return train_flags(job, directory, model, **steps, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ps", "chief"])
def test_the_rest_ends_when_a_task_is_killed(untrained_job, tmp_path, victim):
    directory = tmp_path / "model"
    flags = _endless(untrained_job, directory)
    shape = ("--workers=1", "--ps=1", "--end_seconds=20")
    with launched("cluster", *shape, "--", "train", *flags) as process:
        await_checkpoint(process, directory, 200)
        os.kill(task_process(directory, victim), signal.SIGKILL)
        killed = time.monotonic()
        said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGKILL
    assert f"{victim} 0 ended with code 137" in said
    assert time.monotonic() - killed < 60
    assert processes_of(directory) == []


@pytest.mark.slow
def test_without_a_launcher_the_others_notice_by_themselves(untrained_job, tmp_path):
    """Also for workers in step, which TensorFlow would let wait for ever."""
    directory = tmp_path / "model"
    flags = _endless(
        untrained_job, directory, "keras_wide_deep", lost_seconds=_LOST_SECONDS
    )
    addresses = free_addresses(2)
    with contextlib.ExitStack() as stack:
        tasks = [
            stack.enter_context(
                launched("train", *flags, TF_CONFIG=_workers(addresses, index))
            )
            for index in range(2)
        ]
        await_checkpoint(tasks[0], directory, 200)
        tasks[1].kill()
        said, _ = tasks[0].communicate(timeout=_LOST_SECONDS + 60)
    assert tasks[0].returncode == 138, said
    assert "worker 1 (127.0.0.1:" in said


def _workers(addresses, index) -> str:
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": addresses}, "task": task})


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker", "ps"])
def test_a_task_that_comes_back_in_time_is_waited_for(untrained_job, tmp_path, victim):
    """A ps comes back without weights; they are those of the last checkpoint again."""
    directory = tmp_path / "model"
    flags = train_flags(
        untrained_job,
        directory,
        "wide_deep",
        max_steps=2000,
        checkpoint_steps=200,
        eval_steps=1_000_000,
        lost_seconds=SECONDS,
    )
    addresses = free_addresses(3)
    roles = ("chief", "worker", "ps")
    cluster = {role: [a] for role, a in zip(roles, addresses, strict=True)}

    def start(stack, role):
        value = {"cluster": cluster, "task": {"type": role, "index": 0}}
        return stack.enter_context(
            launched("train", *flags, TF_CONFIG=json.dumps(value))
        )

    with contextlib.ExitStack() as stack:
        tasks = {role: start(stack, role) for role in roles}
        await_checkpoint(tasks["chief"], directory, 200)
        tasks[victim].kill()
        tasks[victim].wait()
        tasks[victim] = start(stack, victim)
        for role in roles:
            said, _ = tasks[role].communicate(timeout=SECONDS)
            assert tasks[role].returncode == 0, f"{role}: {said[-3000:]}"
    assert 2000 <= _results(directory)["global_step"] <= 2002


@pytest.mark.slow
@pytest.mark.parametrize("model", ["wide_deep", "keras_wide_deep"])
@pytest.mark.parametrize(
    ("shape", "first"),
    [
        (["--workers=1", "--ps=1", "--evaluator"], "launcher"),
        (["--workers=1"], "launcher"),
        # The one that a node was taken from; it cannot save without the others.
        (["--workers=1"], "worker"),
    ],
    ids=["ps", "in step", "in step, one worker"],
)
def test_sigterm_saves_and_the_rerun_goes_on(
    untrained_job, tmp_path, model, shape, first
):
    directory = tmp_path / "model"
    flags = _endless(untrained_job, directory, model)
    with launched("cluster", *shape, "--", "train", *flags) as process:
        await_checkpoint(process, directory, 200)
        number = process.pid
        if first != "launcher":
            number = task_process(directory, first)
        os.kill(number, signal.SIGTERM)
        sent = time.monotonic()
        said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 143, said
    # 30 on a machine that is not busy.
    assert time.monotonic() - sent < 60
    assert "Traceback" not in said
    (saved,) = {
        int(step.replace(",", ""))
        for step in re.findall(r"a checkpoint is saved at step ([\d,]+)", said)
    }
    assert saved >= 200
    # With a ps the worker may take further steps until it is saved.
    assert saved <= weights(directory)["global_step"] < saved + 20
    assert processes_of(directory) == []
    flags = train_flags(
        untrained_job,
        directory,
        model,
        max_steps=saved + 20,
        eval_steps=1_000_000,
        checkpoint_steps=200,
    )
    done = run("cluster", *shape, "--", "train", *flags)
    assert done.returncode == 0, done.stderr[-3000:]
    resumed = re.search(r"goes on from step ([\d,]+)", done.stderr).group(1)
    assert saved <= int(resumed.replace(",", "")) < saved + 20
    assert saved + 20 <= _results(directory)["global_step"] <= saved + 22
    assert list(directory.glob("tmp_*")) == []


@pytest.mark.slow
def test_killing_the_launcher_takes_all_along(untrained_job, tmp_path):
    directory = tmp_path / "model"
    flags = _endless(untrained_job, directory)
    shape = ("--workers=1", "--ps=1")
    with launched("cluster", *shape, "--", "train", *flags) as process:
        await_checkpoint(process, directory, 200)
    await_nobody(directory)


def test_a_missing_task_is_named(untrained_job, tmp_path):
    """A parameter server, which has nobody to serve."""
    address, absent = free_addresses(2)
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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(
        "train",
        *train_flags(untrained_job, tmp_path / "model", "wide_deep"),
        TF_CONFIG='{"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}',
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: TF_CONFIG: task is missing")
    assert done.stderr.count("\n") == 1
    # Processor time, which does not depend on what else runs.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
    assert not (tmp_path / "model").exists()
