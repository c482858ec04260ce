"""SIGTERM ends a night in good order: it lets go of its lock and is recorded."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from pipeline.types import ExitCode, UserError


def _end(number, frame) -> None:
    del number, frame
    raise UserError(
        "ended by SIGTERM; the same command goes on with what is left",
        ExitCode.PREEMPTED,
    )


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """In the body SIGTERM raises UserError (PREEMPTED); for the main thread.

    Python waits for a call of TensorFlow's to return first. Where that takes longer than
    the sender waits, SIGKILL follows, and the next run takes the lock over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
