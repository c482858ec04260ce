"""Runs a trial as a process of its own, and ends it early where it is hopeless."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from pipeline.tuning.trials import State, Trial
from pipeline.types import ExitCode, UserError

LOG_FILE = "train.log"
_POLL_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Has the kernel kill this process when the search dies, even by SIGKILL."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run(
    trial: Trial, arguments: Sequence[str], is_hopeless: Callable[[], bool]
) -> State:
    """Trains a trial, or goes on with it, and returns how it ended.

    Args:
      trial: The trial; its directory exists.
      arguments: Of the train command, behind its name.
      is_hopeless: Asked after each evaluation.

    Raises:
      UserError: The flags are wrong, which further trials would be as well.
    """
    path = os.path.join(trial.directory, LOG_FILE)
    with open(path, "a", encoding="utf-8") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "pipeline", "train", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
        )
    pruned = False
    seen = 0
    try:
        while child.poll() is None:
            count = len(trial.evaluations())
            if not pruned and count > seen:
                seen = count
                pruned = is_hopeless()
                if pruned:
                    child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_SECONDS)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    if pruned:
        return State.PRUNED
    if child.returncode == ExitCode.USER_ERROR and seen == 0:
        raise UserError(f"trial {trial.number}: {_last_line(path)}")
    return State.COMPLETE if child.returncode == 0 else State.FAILED


def _last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.read().strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else f"see {path}"
