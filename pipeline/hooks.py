"""Session hooks of our own."""

from __future__ import annotations

from model_fns.step_loop import StepLoop
from pipeline.compat import tf
from pipeline.console import Console, Progress

_v1 = tf.compat.v1
# Fetching the loss copies one number; doing it each step would still cost a step's
# share on small models.
_LOSS_EVERY_STEPS = 10


class ProgressHook(_v1.train.SessionRunHook):
    """Shows step, loss, examples/s and time left while an Estimator trains.

    Args:
      console: Where to print.
      batch_size: Examples in a step.
      loop: Which steps a call of the session runs.
    """

    def __init__(self, console: Console, batch_size: int, loop: StepLoop):
        self._console = console
        self._batch_size = batch_size
        self._loop = loop
        self._progress: Progress | None = None
        self._loss: float | None = None
        self._step = 0
        self._losses: list = []

    def begin(self):
        self._global_step = _v1.train.get_global_step()
        # The Estimator puts its total loss last into this collection.
        self._losses = _v1.get_collection(_v1.GraphKeys.LOSSES)[-1:]

    def after_create_session(self, session, coord):
        del coord
        self._step = int(session.run(_v1.train.get_global_step()))
        self._progress = Progress(
            self._console, "train", "step", self._loop.last_step, self._step
        )

    def before_run(self, run_context):
        del run_context
        if self._losses and self._step % _LOSS_EVERY_STEPS == 0:
            return _v1.train.SessionRunArgs((self._losses[0], self._global_step))
        return None

    def after_run(self, run_context, run_values):
        del run_context
        self._step = self._loop.end_of_call(self._step)
        if run_values.results is not None:
            loss, step = run_values.results
            self._loss = float(loss)
            # Other workers count as well, and a call may take several steps.
            self._step = max(self._step, int(step))
        note = "" if self._loss is None else f"loss {self._loss:.4f}"
        self._progress.update(self._step, self._batch_size, note)

    def end(self, session):
        del session
        self._progress.close()


class RowsHook(_v1.train.SessionRunHook):
    """Shows rows, rows/s and time left of an evaluation.

    Args:
      console: Where to print.
      stage: First word of the line.
      rows: How many there are.
      batch_size: Rows of a step; the last one may have fewer.
    """

    def __init__(self, console: Console, stage: str, rows: int, batch_size: int):
        self._console = console
        self._stage = stage
        self._rows = rows
        self._batch_size = batch_size

    def after_create_session(self, session, coord):
        del session, coord
        self._done = 0
        self._progress = Progress(
            self._console, self._stage, "row", self._rows, speed_unit="rows"
        )

    def after_run(self, run_context, run_values):
        del run_context, run_values
        self._done = min(self._done + self._batch_size, self._rows)
        self._progress.update(self._done)

    def end(self, session):
        del session
        self._progress.close()
