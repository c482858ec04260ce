"""A profile of some steps for TensorBoard, and what it says in a line."""

from __future__ import annotations

import time

from model_fns.step_loop import StepLoop
from pipeline import batches
from pipeline.compat import tf
from pipeline.console import Console

_v1 = tf.compat.v1
_INPUT_BOUND = 0.3
_SHORT_STEP_SECONDS = 0.005


def advice(waited: float | None, step_seconds: float) -> str:
    """Returns what limits the speed, and which flags to try.

    Args:
      waited: Share of the time in which steps waited for rows; None if unknown.
      step_seconds: Mean time of a step.
    """
    each = f"{step_seconds * 1000:,.1f} ms a step"
    if waited is None:
        return f"{each}; how long steps wait for rows can't be seen here"
    share = f"{waited:.0%} of it waiting for rows"
    if waited >= _INPUT_BOUND:
        return (
            f"input-bound: {each}, {share}; try --cache=memory, more --input_threads or"
            " --prefetch_batches"
        )
    tries = "--xla, or --mixed_precision where the processor has bfloat16"
    if step_seconds < _SHORT_STEP_SECONDS:
        tries = f"--steps_per_run=50, a larger --batch_size, {tries}"
    return f"compute-bound: {each}, {share}; try {tries}"


class ProfileHook(_v1.train.SessionRunHook):
    """Traces the steps from `first` to before `end` into the model directory.

    Args:
      directory: The model directory.
      first: First step.
      end: The step after the last one.
      loop: Which steps a call of the session runs.
      sees_input: Whether the graph is one that `batches.arrivals` is for.
      console: Where to print.
    """

    def __init__(
        self,
        directory: str,
        first: int,
        end: int,
        loop: StepLoop,
        sees_input: bool,
        console: Console,
    ):
        self._directory = directory
        self._first, self._end = first, end
        self._loop = loop
        self._sees_input = sees_input
        self._console = console
        self._is_tracing = False

    def begin(self):
        self._global_step = _v1.train.get_global_step()
        self._arrivals = batches.arrivals() if self._sees_input else None

    def after_create_session(self, session, coord):
        del coord
        self._step = int(session.run(self._global_step))
        self._is_done = self._step >= self._end

    def before_run(self, run_context):
        del run_context
        if self._is_done or self._loop.end_of_call(self._step) < self._first:
            return None
        if not self._is_tracing:
            tf.profiler.experimental.start(self._directory)
            self._is_tracing = True
            self._began, self._waited = time.perf_counter(), 0.0
            self._traced_from = self._step
        if self._arrivals is None:
            return None
        return _v1.train.SessionRunArgs(self._arrivals.waited)

    def after_run(self, run_context, run_values):
        del run_context
        self._step = self._loop.end_of_call(self._step)
        if not self._is_tracing:
            return
        if run_values.results is not None:
            self._waited += float(run_values.results)
        if self._loop.end_of_call(self._step) >= self._end:
            self._stop()

    def end(self, session):
        del session
        if self._is_tracing:
            self._stop()

    def _stop(self) -> None:
        seconds = time.perf_counter() - self._began
        tf.profiler.experimental.stop()
        self._is_tracing, self._is_done = False, True
        steps = self._step - self._traced_from
        waited = None if self._arrivals is None else self._waited / seconds
        self._console.progress(
            f"profile: steps {self._traced_from + 1:,} to {self._step:,} are in"
            f" {self._directory}/plugins/profile; {advice(waited, seconds / steps)}"
        )
