"""Evaluation of checkpoints as they appear: in the evaluator, or in the leader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from pipeline.compat import tf

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
            except (tf.errors.OpError, ValueError):
                # Training keeps only so many; this one may have gone meanwhile.
                if os.path.exists(f"{newest}.index"):
                    raise
            else:
                done = newest
        elif over:
            return
        else:
            time.sleep(_POLL_SECONDS)


class EvaluateNewCheckpoints(tf.compat.v1.train.SessionRunHook):
    """Evaluates checkpoints in the leader of a cluster without an evaluator.

    The others go on, or, where they train in step, wait.

    Args:
      directory: The model directory.
      evaluate: Does it.
    """

    def __init__(self, directory: str, evaluate: Evaluate):
        self._directory = directory
        self._evaluate = evaluate
        self._seen: tuple[int, int] | None = None

    def _look(self) -> bool:
        """Returns whether the list of checkpoints has changed."""
        try:
            status = os.stat(os.path.join(self._directory, "checkpoint"))
        except FileNotFoundError:
            return False
        seen, self._seen = self._seen, (status.st_mtime_ns, status.st_ino)
        return seen != self._seen

    def after_create_session(self, session, coord):
        del session, coord
        self._look()

    def after_run(self, run_context, run_values):
        del run_context, run_values
        # The first checkpoint is that of the start.
        first = self._seen is None
        if self._look() and not first:
            self._evaluate(_newest(self._directory), False)
