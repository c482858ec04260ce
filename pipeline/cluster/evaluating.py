"""Evaluation of checkpoints as they appear: in the evaluator, or in the leader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from pipeline.compat import tf
from pipeline.types import UserError

Evaluate = Callable[[str, bool], None]
"""Evaluates a checkpoint (its path prefix); told whether it is the last one."""
_POLL_SECONDS = 1.0


def _newest(directory: str) -> str | None:
    try:
        return tf.train.latest_checkpoint(directory)
    except ValueError:  # Its list of checkpoints is empty.
        return None


def follow(directory: str, evaluate: Evaluate, is_over: Callable[[], bool]) -> None:
    """Evaluates each newest checkpoint until training is over, the last one included.

    Args:
      directory: The model directory.
      evaluate: Does it.
      is_over: Whether no further checkpoint will come.
    """
    done = None
    while True:
        # Asked first, so that no checkpoint can come between the two.
        over = is_over()
        newest = _newest(directory)
        if newest is not None and newest != done:
            try:
                evaluate(newest, over)
            except (tf.errors.OpError, ValueError, UserError):
                # Training keeps only so many; this one may have gone meanwhile.
                if os.path.exists(f"{newest}.index"):
                    raise
            else:
                done = newest
        elif over:
            return
        else:
            time.sleep(_POLL_SECONDS)


class EvaluateNewCheckpoints(tf.compat.v1.train.CheckpointSaverListener):
    """Evaluates checkpoints in the leader of a cluster without an evaluator.

    The others go on, or, where they train in step, wait.

    Args:
      directory: The model directory.
      evaluate: Does it.
    """

    def __init__(self, directory: str, evaluate: Evaluate):
        self._directory = directory
        self._evaluate = evaluate
        self._step: int | None = None

    def after_save(self, session, global_step_value):
        del session
        before, self._step = self._step, int(global_step_value)
        # The first checkpoint is that of the start.
        if before is not None and before != self._step:
            self._evaluate(_newest(self._directory), False)
