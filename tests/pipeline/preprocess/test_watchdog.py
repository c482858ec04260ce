"""Programs that hang, die or outlive their parent, and Beam's workers among them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.console import Console
from pipeline.preprocess import watchdog
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[3]
QUIET = Console(-1)


def _run(program: str, stall_seconds: float = 60.0, progress=lambda: 0) -> None:
    watchdog.run(
        [sys.executable, "-c", program],
        progress=progress,
        stall_seconds=stall_seconds,
        console=QUIET,
    )


def _is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _wait_until_dead(process: int) -> None:
    deadline = time.monotonic() + 10
    while _is_alive(process):
        assert time.monotonic() < deadline, f"process {process} is still there"
        time.sleep(0.05)


def test_a_program_that_ends_well_says_nothing(capfd):
    _run("print('noise')")
    assert capfd.readouterr() == ("", "")


def test_what_a_failed_program_said_is_shown(capfd):
    with pytest.raises(RuntimeError, match="exit code 3"):
        _run("import sys; print('why'); sys.exit(3)")
    assert "why" in capfd.readouterr().err


def test_a_program_without_progress_is_stopped_with_its_children(tmp_path):
    pid = tmp_path / "pid"
    program = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(1000)"
    )
    began = time.monotonic()
    with pytest.raises(UserError, match="no progress for 1s") as caught:
        _run(program, stall_seconds=1.0)
    assert caught.value.exit_code is ExitCode.WORKER_FAILED
    assert time.monotonic() - began < 10
    _wait_until_dead(int(pid.read_text()))


def test_progress_keeps_a_slow_program_alive():
    _run("import time; time.sleep(2)", stall_seconds=1.0, progress=time.monotonic)


def test_a_killed_program_is_one_line():
    with pytest.raises(UserError, match="ended by signal 9"):
        _run("import os; os.kill(os.getpid(), 9)")


# --- Beam's own workers -----------------------------------------------------------

_FEATURES = """
columns: {n: {type: int}, c: {type: string}}
features: {n: {kind: numeric}, c: {kind: vocabulary}}
"""


def _start(tmp_path: Path, files: int, rows: int, *options: str) -> subprocess.Popen:
    (tmp_path / "features.yaml").write_text(_FEATURES)
    for number in range(files):
        lines = "".join(f"{i},w{i % 7}\n" for i in range(number, rows + number))
        (tmp_path / f"{number}.csv").write_text(f"n,c\n{lines}")
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pipeline",
            "preprocess",
            f"--input={tmp_path}/*.csv",
            f"--features={tmp_path}/features.yaml",
            f"--dataset_dir={tmp_path}/d",
            *options,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


_TWO_WORKERS = (
    "--beam_option=--direct_running_mode=multi_processing",
    "--beam_option=--direct_num_workers=2",
)


def _descendants(process: int) -> dict[int, str]:
    """Process numbers below one, with their command lines."""
    parents, commands = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{entry}/stat").read_text()
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        parents[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
        commands[int(entry)] = command.replace(b"\0", b" ").decode(errors="replace")
    found, newest = {}, [process]
    while newest:
        newest = [p for p, parent in parents.items() if parent in newest]
        found.update({p: commands[p] for p in newest})
    return found


def _wait_for_worker(job: subprocess.Popen) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process, command in _descendants(job.pid).items():
            if "sdk_worker_main" in command and "python" in command.split()[0]:
                return process
        assert job.poll() is None, job.stderr.read()
        time.sleep(0.05)
    raise AssertionError("no worker process was started")


@pytest.mark.slow
def test_two_worker_processes_make_the_same_records_quietly(tmp_path):
    records = {}
    for name, options in (("one", ()), ("two", _TWO_WORKERS)):
        directory = tmp_path / name
        directory.mkdir()
        job = _start(directory, 4, 20_000, *options)
        output, errors = job.communicate(timeout=300)
        assert job.returncode == 0, errors
        assert all(line.startswith("preprocess: ") for line in errors.splitlines())
        records[name] = {
            path.name: path.read_bytes() for path in directory.glob("d/*.tfrecord")
        }
    assert records["one"] == records["two"]
    assert len(records["one"]) == 12


@pytest.mark.slow
def test_a_killed_worker_ends_the_run_in_an_error(tmp_path):
    job = _start(tmp_path, 4, 200_000, *_TWO_WORKERS)
    worker = _wait_for_worker(job)
    time.sleep(1)
    others = set(_descendants(job.pid))
    os.kill(worker, signal.SIGKILL)
    began = time.monotonic()
    _, errors = job.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert job.returncode == ExitCode.WORKER_FAILED
    last = errors.splitlines()[-1]
    assert last.startswith("error: a Beam worker process died")
    for process in others:
        _wait_until_dead(process)
    assert not (tmp_path / "d").exists()
    assert not list(tmp_path.glob(".d.tmp-*"))


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_command(tmp_path):
    job = _start(tmp_path, 4, 200_000, *_TWO_WORKERS)
    _wait_for_worker(job)
    others = set(_descendants(job.pid))
    job.kill()
    job.communicate(timeout=30)
    for process in others:
        _wait_until_dead(process)
