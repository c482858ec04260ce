"""Runs a program that may hang: a process group of its own, stopped as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from pipeline.console import Console, duration
from pipeline.types import ExitCode, UserError

_POLL_SECONDS = 0.2
WORKER_LOST = 75
"""What the program exits with when one of its workers died."""


def bytes_in(directory: str) -> int:
    """Returns the size of the files in a directory, which others are writing."""
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total


def run(
    command: Sequence[str],
    *,
    progress: Callable[[], object],
    stall_seconds: float,
    console: Console,
) -> None:
    """Runs a program to its end and leaves none of its processes behind.

    Its standard input is a pipe that ends when this process does, however it
    ends. What it says is held back unless it fails or everything is to be shown.

    Args:
      command: The program and its arguments.
      progress: Returns something that changes while the program gets on.
      stall_seconds: The program is stopped after so long without a change.
      console: Where to print.

    Raises:
      UserError: It was stopped or one of its workers died (WORKER_FAILED).
      RuntimeError: It failed in another way.
    """
    with _output(console) as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        try:
            _wait(child, progress, stall_seconds)
        except BaseException:
            _show(output)
            raise
        finally:
            _kill_group(child)


def _wait(
    child: subprocess.Popen, progress: Callable[[], object], stall_seconds: float
) -> None:
    state, changed = progress(), time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = child.wait(_POLL_SECONDS)
            break
        new_state = progress()
        if new_state != state:
            state, changed = new_state, time.monotonic()
        elif time.monotonic() - changed > stall_seconds:
            raise UserError(
                f"Beam made no progress for {duration(stall_seconds)} and was stopped;"
                " run again, with fewer workers or a longer --beam_stall_seconds",
                ExitCode.WORKER_FAILED,
            )
    if code == WORKER_LOST:
        raise UserError(
            "a Beam worker process died (was it killed, or out of memory?); run"
            " again, with fewer workers if memory is short",
            ExitCode.WORKER_FAILED,
        )
    if code < 0:
        raise UserError(
            f"the Beam run was ended by signal {-code}; run again",
            ExitCode.WORKER_FAILED,
        )
    if code:
        raise RuntimeError(f"the Beam run failed with exit code {code}")


@contextlib.contextmanager
def _output(console: Console) -> Iterator[BinaryIO | None]:
    """Where the program's output goes; None is this process's standard error."""
    if console.verbosity >= 1:
        yield sys.stderr.buffer
        return
    with tempfile.TemporaryFile() as held:
        yield held


def _show(output: BinaryIO) -> None:
    if output is not sys.stderr.buffer:
        output.seek(0)
        shutil.copyfileobj(output, sys.stderr.buffer)
        sys.stderr.flush()


def _kill_group(child: subprocess.Popen) -> None:
    # The group's number stays taken until the child has been waited for.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdin.close()
