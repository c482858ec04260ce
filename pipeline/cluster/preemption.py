"""SIGTERM: a checkpoint is saved, and the process ends, within a stated time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from pipeline import saving_hooks
from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

_v1 = tf.compat.v1
_SECONDS = 20
"""After so long the process ends whatever it is doing; clusters often grant 30."""


class Ended(BaseException):
    """SIGTERM came where there is nothing to save.

    No Exception, since it may come up in the midst of any call: Keras and AutoGraph wrap
    Exceptions into their own, and others pass them over.
    """


class Preemption:
    """Whether this process was asked to end.

    Attributes:
      requested: Set once it was.
      evaluating: Whether a checkpoint, saved before, is being evaluated.
    """

    def __init__(self):
        self.requested = threading.Event()
        self.evaluating = False
        self._in_session = False
        self._is_handled = False

    def _on_signal(self, number, frame):
        del number, frame
        self.requested.set()
        if self.evaluating or not self._in_session:
            self.end()

    def install(self) -> None:
        """Takes SIGTERM again after TensorFlow did; only within `handled`.

        The servers of workers in step have a handler of their own, which only tells
        the others.
        """
        if self._is_handled and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)

    def end(self) -> NoReturn:
        """Ends the process where there is nothing to save."""
        raise Ended(
            "ended by SIGTERM; the same command goes on from the last checkpoint"
        )

    @contextlib.contextmanager
    def in_session(self) -> Iterator[None]:
        """In the body a `PreemptionHook` answers the request."""
        self._in_session = True
        try:
            yield
        finally:
            self._in_session = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handles SIGTERM while the body runs; for the main thread.

        Raises:
          UserError: SIGTERM ended the body (PREEMPTED).
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # Python's handlers wait until a call of TensorFlow's returns, which may be
        # never. The kernel's writes into this socket at once.
        here, there = socket.socketpair()
        there.setblocking(False)
        old_wakeup = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        old = signal.getsignal(signal.SIGTERM)
        self._is_handled = True
        self.install()
        thread = threading.Thread(target=_enforce, args=(here,), daemon=True)
        thread.start()
        try:
            yield
        except Ended as ended:
            raise UserError(str(ended), ExitCode.PREEMPTED) from None
        finally:
            self._is_handled = False
            signal.signal(signal.SIGTERM, old)
            signal.set_wakeup_fd(old_wakeup)
            there.close()
            thread.join()
            here.close()


def _enforce(wakeup: socket.socket) -> None:
    """Ends the process some time after a SIGTERM; returns when the socket closes."""
    while numbers := wakeup.recv(64):
        if signal.SIGTERM not in numbers:
            continue
        wakeup.settimeout(_SECONDS)
        with contextlib.suppress(TimeoutError):
            while wakeup.recv(64):
                pass
            return
        with contextlib.suppress(OSError, ValueError):
            print(
                f"error: ended {_SECONDS} seconds after SIGTERM, in the midst of a step"
                " or of making a graph; the same command goes on from the last checkpoint",
                file=sys.stderr,
                flush=True,
            )
        os._exit(ExitCode.PREEMPTED)


class PreemptionHook(_v1.train.SessionRunHook):
    """Ends a session after a SIGTERM, with a checkpoint.

    Args:
      preemption: Whether to end.
      directory: The model directory; None where this process does not save.
      guards: Listeners that may refuse a checkpoint by raising in `before_save`.
    """

    def __init__(
        self,
        preemption: Preemption,
        directory: str | None,
        guards: Sequence[_v1.train.CheckpointSaverListener],
    ):
        self._preemption = preemption
        self._guards = guards
        self._directory = directory

    def begin(self):
        self._step = _v1.train.get_global_step()
        for guard in self._guards:
            guard.begin()

    def after_create_session(self, session, coord):
        del session, coord
        self._preemption.install()

    def after_run(self, run_context, run_values):
        del run_values
        if not self._preemption.requested.is_set():
            return
        said = "the same command goes on from the last checkpoint"
        if self._directory is not None:
            said = f"a checkpoint is saved at step {self._save(run_context.session):,}"
        raise UserError(f"ended by SIGTERM; {said}", ExitCode.PREEMPTED)

    def _save(self, session) -> int:
        step = int(session.run(self._step))
        saving_hooks.save_unless_saved(session, self._directory, step, self._guards)
        return step


class EvaluationHook(_v1.train.SessionRunHook):
    """Ends an evaluation after a SIGTERM.

    Args:
      preemption: Whether to end.
    """

    def __init__(self, preemption: Preemption):
        self._preemption = preemption

    def begin(self):
        self._preemption.evaluating = True
        if self._preemption.requested.is_set():
            self._preemption.end()

    def end(self, session):
        del session
        self._preemption.evaluating = False
