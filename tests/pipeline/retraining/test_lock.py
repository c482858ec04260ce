"""Who holds the lock, and when it is taken over."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline import files
from pipeline.console import Console
from pipeline.retraining import lock
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[3]
QUIET = Console(-1)
HOLDER = """
import sys
from pipeline.console import Console
from pipeline.retraining import lock
with lock.held(sys.argv[1], 300, Console(0)):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


@contextlib.contextmanager
def holder(path):
    """A process that holds the lock; ends when its input does."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "held\n", process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def take(path, stale_seconds: float = 300):
    return lock.held(str(path), stale_seconds, QUIET)


def test_a_live_owner_is_named(tmp_path):
    path = tmp_path / "lock.json"
    with holder(path) as process:
        with pytest.raises(UserError) as caught, take(path):
            pass
        assert caught.value.exit_code is ExitCode.LOCKED
        assert f"process {process.pid} of " in str(caught.value)
        owner = lock.read(str(path)).owner
        assert owner.process == process.pid
        assert owner.host in str(caught.value)
        # However long it is silent: on this machine its death would be known.
        os.utime(path, (0, 0))
        with pytest.raises(UserError), take(path, stale_seconds=10):
            pass
        assert process.communicate("\n", timeout=60)[0] == "released\n"
    assert not path.exists()
    with take(path):
        assert lock.read(str(path)).owner.process == os.getpid()


def test_a_dead_owner_is_followed_at_once(tmp_path, capsys):
    path = tmp_path / "lock.json"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        assert lock.read(str(path)).dead
        with lock.held(str(path), 300, Console(0)):
            assert lock.read(str(path)).owner.process == os.getpid()
    assert f"taken over from process {process.pid}" in capsys.readouterr().err
    assert not path.exists()


def _write(path, **changes) -> None:
    owner = dataclasses.asdict(lock._me())
    files.write_json(str(path), {**owner, "token": "other", **changes})


def test_a_number_of_a_process_that_is_used_again_is_no_owner(tmp_path):
    path = tmp_path / "lock.json"
    _write(path, started=1)
    assert lock.read(str(path)).dead
    with take(path):
        pass


def test_the_owner_on_another_machine_has_its_time(tmp_path):
    path = tmp_path / "lock.json"
    _write(path, machine="elsewhere", host="far", process=2**22 + 1)
    with pytest.raises(UserError, match="on far since"), take(path, stale_seconds=60):
        pass
    long_ago = time.time() - 100
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(UserError), take(path, stale_seconds=1000):
        pass
    with take(path, stale_seconds=60):
        assert lock.read(str(path)).owner.host != "far"


def test_who_lost_the_lock_stops(tmp_path):
    path = tmp_path / "lock.json"
    with take(path) as held:
        held.check()
        _write(path, host="far", machine="elsewhere")
        with pytest.raises(UserError, match="taken over meanwhile") as caught:
            held.check()
        assert caught.value.exit_code is ExitCode.LOCKED
    # It is the other one's now.
    assert lock.read(str(path)).owner.token == "other"
    path.unlink()
    with take(path) as held:
        path.unlink()
        with pytest.raises(UserError, match="nobody holds it"):
            held.check()


def test_the_heartbeat(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.01)
    path = tmp_path / "lock.json"
    with take(path):
        os.utime(path, (0, 0))
        end = time.monotonic() + 30
        while os.stat(path).st_mtime == 0:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert lock.read(str(path)).silent < 30
    assert not path.exists()


def test_a_file_that_is_no_lock_is_not_taken_for_one(tmp_path):
    path = tmp_path / "lock.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(UserError, match="is not a lock of this pipeline"), take(path):
        pass
    assert json.loads(path.read_text()) == {"a": 1}
