"""Hooks that end training before max_steps."""

from __future__ import annotations

import os
import time

from pipeline import evaluations
from pipeline.compat import tf
from pipeline.early_stopping import Rule


class EarlyStoppingHook(tf.compat.v1.train.SessionRunHook):
    """Stops training as soon as the file of evaluations says so.

    The file may be written by this process or by another one. TensorFlow's own
    make_early_stopping_hook reads event files, and takes each strategy for one of many
    workers.

    Args:
      directory: The model directory.
      rule: When to stop.
    """

    def __init__(self, directory: str, rule: Rule):
        self._directory = directory
        self._rule = rule
        self._seen: tuple[int, int] | None = None

    def after_run(self, run_context, run_values):
        del run_values
        path = os.path.join(self._directory, evaluations.FILE_NAME)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return
        now = (status.st_mtime_ns, status.st_ino)
        if now == self._seen:
            return
        self._seen = now
        if self._rule.reason(evaluations.read(self._directory)) is not None:
            run_context.request_stop()


class LastStepHook(tf.compat.v1.train.SessionRunHook):
    """Stops training at its last step, where a call of the session runs several.

    The Estimator's own hook counts one step a call, and would run another one.
    """

    def __init__(self, last_step: int):
        self._last_step = last_step

    def begin(self):
        self._step = tf.compat.v1.train.get_global_step()

    def after_run(self, run_context, run_values):
        del run_values
        if int(run_context.session.run(self._step)) >= self._last_step:
            run_context.request_stop()


class TimeBudgetHook(tf.compat.v1.train.SessionRunHook):
    """Stops training after so many seconds; what runs at the end comes on top.

    Args:
      seconds: Counted from when the hook is made.

    Attributes:
      used_up: Whether it has stopped training.
    """

    def __init__(self, seconds: int):
        self._end = time.monotonic() + seconds
        self.used_up = False

    def after_run(self, run_context, run_values):
        del run_values
        if time.monotonic() >= self._end:
            self.used_up = True
            run_context.request_stop()
