"""monitor: TensorBoard on the right runs, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import helpers_monitor
import pytest

from pipeline import app, monitor
from pipeline.compat import tf


def _write_event(directory: Path, tag: str, value: float) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "events.out.tfevents.1.host"
    summary = tf.compat.v1.Summary()
    summary.value.add(tag=tag, simple_value=value)
    with tf.io.TFRecordWriter(str(path)) as writer:
        event = tf.compat.v1.Event(wall_time=1.0, file_version="brain.Event:2")
        writer.write(event.SerializeToString())
        event = tf.compat.v1.Event(wall_time=1.0, step=7, summary=summary)
        writer.write(event.SerializeToString())


@pytest.fixture
def work_dir(tmp_path) -> Path:
    _write_event(tmp_path / "dnn/model", "loss", 0.5)
    _write_event(tmp_path / "dnn/model/eval", "loss", 0.6)
    (tmp_path / "dataset").mkdir()
    return tmp_path


def test_runs(work_dir):
    assert monitor.runs(str(work_dir)) == ["dnn/model", "dnn/model/eval"]


def test_no_directory(tmp_path, capsys):
    assert app.main(["monitor", f"--work_dir={tmp_path}/none"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"there is no directory {tmp_path}/none" in error


def test_a_port_in_use(work_dir, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["monitor", f"--work_dir={work_dir}", f"--monitor_port={port}"]
        assert app.main(arguments) == 2
    error = capsys.readouterr().err
    assert error == f"error: --monitor_port={port} is in use; 0 takes a free one\n"


def _children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as f:
        return [int(number) for number in f.read().split()]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_the_runs_and_ends(work_dir, number):
    process = helpers_monitor.start(work_dir, subprocess.PIPE)
    try:
        line = process.stdout.readline()
        (address,) = re.findall(r"TensorBoard: (http://127\.0\.0\.1:\d+/)", line)
        with urllib.request.urlopen(f"{address}data/runs", timeout=120) as answer:
            assert isinstance(json.load(answer), list)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0
    assert said == "monitor: 2 runs: dnn/model, dnn/model/eval; Ctrl-C ends it\n"


@pytest.mark.slow
def test_leaves_no_process_when_it_is_killed(work_dir):
    process = helpers_monitor.start(work_dir)
    try:
        assert process.stdout.readline().startswith("TensorBoard: ")
        children = _children(process.pid)
    finally:
        process.kill()
        process.wait(timeout=60)
    for child in children:
        _wait(child)


def _wait(process: int) -> None:
    """Waits for the end of a process that is no child of ours."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([handle], [], [], 120)
    finally:
        os.close(handle)
    assert ended
