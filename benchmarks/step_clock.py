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


def hook(clock: StepClock, steps_a_call: int = 1):
    """Returns a session hook that tells the clock the steps after each call.

    Args:
      steps_a_call: Steps that a call of the session runs.
    """
    from pipeline.compat import tf

    class Hook(tf.compat.v1.train.SessionRunHook):
        step = 0

        def after_run(self, run_context, run_values):
            del run_context, run_values
            self.step += steps_a_call
            clock.at(self.step)

    return Hook()
