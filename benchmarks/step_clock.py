"""Times the steps of a training after its warm-up."""

from __future__ import annotations

import time


class StepClock:
    """Call `at` after each step, or group of steps.

    Args:
      warm_up: Steps at the beginning that do not count.

    Attributes:
      steps: Steps that count.
      seconds: Wall time of these.
    """

    def __init__(self, warm_up: int):
        self._warm_up = warm_up
        self._began: float | None = None
        self._first = 0
        self.steps = 0
        self.seconds = 0.0

    def at(self, step: int) -> None:
        if self._began is None:
            if step >= self._warm_up:
                self._began, self._first = time.perf_counter(), step
            return
        self.seconds = time.perf_counter() - self._began
        self.steps = step - self._first


def hook(clock: StepClock):
    """Returns a session hook that tells the clock the global step after each call."""
    from pipeline.compat import tf

    class Hook(tf.compat.v1.train.SessionRunHook):
        def begin(self):
            step = tf.compat.v1.train.get_global_step()
            self._step = step.read_value()

        def before_run(self, run_context):
            return tf.compat.v1.train.SessionRunArgs(self._step)

        def after_run(self, run_context, run_values):
            # It may have been read before or after the step; at one step in
            # thousands that makes no difference.
            clock.at(int(run_values.results))

    return Hook()
