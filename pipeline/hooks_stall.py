"""Says where a training waits that takes no step for long."""

from __future__ import annotations

import threading
import time

from pipeline import batches
from pipeline.cluster.choice import Choice
from pipeline.compat import tf
from pipeline.console import Console, duration

_v1 = tf.compat.v1
_LOOKS = 4
INPUT = "the input: no batch has come"
COMPUTING = "the computation of the step, whose batch is there"
PARAMETER_SERVERS = "a parameter server, or the input"
COMPUTING_OR_INPUT = "the input, or the computation of its steps"
COLLECTIVE = "another worker (collective operation), or the input"


def waits_for(choice: Choice) -> str:
    """Returns where a step may wait whose batches can't be seen."""
    if choice.is_in_step:
        return COLLECTIVE
    return PARAMETER_SERVERS if choice.cluster.is_cluster else COMPUTING_OR_INPUT


class StallHook(_v1.train.SessionRunHook):
    """Prints a line when a call of the session lasts long, and again twice as late.

    A thread looks at it, since the call itself does not return. What it knows comes from
    the graph, in which batches are counted as they arrive.

    Args:
      console: Where to print.
      stage: First word of the line.
      seconds: After how many seconds.
      waits_for: Where a step of this training may wait, if that cannot be seen; None
        where `batches.arrivals` sees it.
    """

    def __init__(
        self, console: Console, stage: str, seconds: int, waits_for: str | None
    ):
        self._console = console
        self._stage = stage
        self._seconds = seconds
        self._waits_for = waits_for

    def begin(self):
        self._arrivals = None if self._waits_for else batches.arrivals()

    def after_create_session(self, session, coord):
        self._calls = 0
        self._began: float | None = None
        arguments = (session, coord)
        threading.Thread(target=self._watch, args=arguments, daemon=True).start()

    def before_run(self, run_context):
        del run_context
        self._calls += 1
        self._began = time.monotonic()
        if self._arrivals is None:
            return None
        return _v1.train.SessionRunArgs(self._arrivals.count)

    def after_run(self, run_context, run_values):
        del run_context, run_values
        self._began = None

    def end(self, session):
        del session
        self._began = None

    def _watch(self, session, coord) -> None:
        said_for, after = None, self._seconds
        # Training stops the coordinator, also when it fails.
        while not coord.wait_for_stop(self._seconds / _LOOKS):
            began, calls = self._began, self._calls
            if began != said_for:
                said_for, after = None, self._seconds
            if began is None or time.monotonic() - began < after:
                continue
            waited = time.monotonic() - began
            where = self._where(session, calls)
            if self._began == began and not coord.should_stop():
                self._console.progress(
                    f"{self._stage}: no step for {duration(waited)}; it waits for {where}"
                )
            said_for, after = began, after * 2

    def _where(self, session, calls: int) -> str:
        if self._arrivals is None:
            return self._waits_for or COMPUTING
        try:
            arrived = self._arrivals.arrived(session)
        except (RuntimeError, tf.errors.OpError):
            # The session was closed meanwhile.
            return COMPUTING
        return INPUT if arrived < calls else COMPUTING
