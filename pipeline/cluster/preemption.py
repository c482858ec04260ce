"""SIGTERM: a checkpoint is saved, and the process ends, within a stated time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from pipeline import saving_hooks
from pipeline.cluster.session import StopTogether
from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

_v1 = tf.compat.v1
_SECONDS = 20
"""After so long the process ends whatever it is doing; clusters often grant 30."""
_AGAIN_SECONDS = 0.1


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

    def begin_session(self) -> None:
        """From now on something answers the request, such as a `PreemptionHook`."""
        self._in_session = True

    def end_session(self) -> None:
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
        old_hook = sys.unraisablehook
        sys.unraisablehook = _again_where_dropped(old_hook)
        try:
            yield
        except Ended as ended:
            raise UserError(str(ended), ExitCode.PREEMPTED) from None
        finally:
            self._is_handled = False
            sys.unraisablehook = old_hook
            signal.signal(signal.SIGTERM, old)
            signal.set_wakeup_fd(old_wakeup)
            there.close()
            thread.join()
            here.close()


def _again_where_dropped(
    report: Callable[[sys.UnraisableHookArgs], object],
) -> Callable[[sys.UnraisableHookArgs], object]:
    """Returns what Python is to do with an exception that it drops.

    Callbacks of weak references and finalizers raise to nobody; SIGTERM is then sent
    again.
    """

    def on_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not Ended:
            report(dropped)
            return
        again = (os.getpid(), signal.SIGTERM)
        timer = threading.Timer(_AGAIN_SECONDS, os.kill, again)
        timer.daemon = True
        timer.start()

    return on_dropped


def _enforce(wakeup: socket.socket) -> None:
    """Ends the process some time after a SIGTERM; returns when the socket closes."""
    while numbers := wakeup.recv(64):
        if signal.SIGTERM not in numbers:
            continue
        end = time.monotonic() + _SECONDS
        with contextlib.suppress(TimeoutError):
            while (left := end - time.monotonic()) > 0:
                # Further signals do not extend the time.
                wakeup.settimeout(left)
                if not wakeup.recv(64):
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
      together: For workers in step.
    """

    def __init__(
        self,
        preemption: Preemption,
        directory: str | None,
        guards: Sequence[_v1.train.CheckpointSaverListener],
        together: StopTogether | None = None,
    ):
        self._preemption = preemption
        self._guards = guards
        self._directory = directory
        self._together = together
        self._steps = 0

    def begin(self):
        self._step = _v1.train.get_global_step()
        for guard in self._guards:
            guard.begin()

    def after_create_session(self, session, coord):
        del coord
        # Counted from here, since reading it would cost each step another call.
        self._steps = int(session.run(self._step))
        self._preemption.install()
        self._preemption.begin_session()

    def after_run(self, run_context, run_values):
        del run_values
        requested = self._preemption.requested
        if self._together is not None:
            self._steps += 1
            if not self._together.is_due(self._steps, requested.is_set()):
                return
            requested.set()
        if not requested.is_set():
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
