"""Hooks that save checkpoints: with each evaluation, and in between."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

_v1 = tf.compat.v1
_PREFIX = "model.ckpt"


class _Multiples:
    """Triggers once a multiple of `every` is reached or passed.

    TensorFlow's own timer counts from where training went on, so that a run that was
    interrupted would save and evaluate at other steps than one that was not.
    """

    def __init__(self, every: int):
        self._every = every
        self.reset()

    def reset(self):
        self._last: int | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        return self._last is None or step // self._every > self._last // self._every

    def update_last_triggered_step(self, step: int) -> None:
        self._last = step

    def last_triggered_step(self) -> int | None:
        return self._last


class CheckpointHook(_v1.train.CheckpointSaverHook):
    """Saves checkpoints at multiples of `every_steps`, at the start and at the end.

    train_and_evaluate evaluates each of them but the first. Where training goes on, it
    marks the start of a session, so that TensorBoard drops points which an earlier run
    wrote beyond this step.

    Args:
      directory: The model directory.
      every_steps: Steps between checkpoints.
      steps_per_run: The most steps that a call of the session runs.
      start_step: Step of the checkpoint from which training goes on. Where TensorFlow
        cannot read the list of checkpoints it begins anew, without a word.
      listeners: Are told of each checkpoint. Those of a TrainSpec are not, where
        workers train in step.
    """

    def __init__(
        self,
        directory: str,
        every_steps: int,
        steps_per_run: int,
        start_step: int,
        listeners: Sequence[_v1.train.CheckpointSaverListener] = (),
    ):
        super().__init__(directory, save_steps=every_steps, listeners=list(listeners))
        self._set_steps_per_run(steps_per_run)
        self._timer = _Multiples(every_steps)
        self._start_step = start_step

    def after_create_session(self, session, coord):
        step = int(session.run(_v1.train.get_global_step()))
        if step < self._start_step:
            raise UserError(
                f"train: the checkpoint of step {self._start_step:,} was not restored,"
                f" since the list of checkpoints in {self._checkpoint_dir} could not be"
                " read; the same command goes on from there",
                ExitCode.TRY_AGAIN,
            )
        if step:
            mark_start(self._checkpoint_dir, step)
        super().after_create_session(session, coord)


def mark_start(directory: str, step: int) -> None:
    """Tells TensorBoard that events of steps above `step` are those that follow now."""
    start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
    # Outside of a training there is no graph, and writers refuse to be made then.
    with tf.Graph().as_default():
        writer = _v1.summary.FileWriterCache.get(directory)
    writer.add_session_log(start, step + 1)


def save_unless_saved(
    session: _v1.Session,
    directory: str,
    step: int,
    guards: Sequence[_v1.train.CheckpointSaverListener],
) -> None:
    """Saves a checkpoint with the Estimator's own Saver, hence within its limit.

    Args:
      session: The session that trains.
      directory: The model directory.
      step: The global step.
      guards: Listeners that may refuse a checkpoint by raising in `before_save`.
    """
    (saver,) = _v1.get_collection(_v1.GraphKeys.SAVERS)
    newest = saver.last_checkpoints[-1:]
    if newest and newest[0].endswith(f"-{step}"):
        return
    for guard in guards:
        guard.before_save(session, step)
    saver.save(session, os.path.join(directory, _PREFIX), global_step=step)


class IntermediateCheckpointHook(_v1.train.SessionRunHook):
    """Saves further checkpoints, which are not evaluated.

    It stands after `CheckpointHook` among the hooks.

    Args:
      directory: The model directory.
      every_steps: Steps between checkpoints, or None.
      every_secs: Seconds between checkpoints; used where every_steps is None.
      guards: Listeners that may refuse a checkpoint by raising in `before_save`.
      steps_per_run: The most steps that a call of the session runs.
    """

    def __init__(
        self,
        directory: str,
        every_steps: int | None,
        every_secs: int | None,
        guards: Sequence[_v1.train.CheckpointSaverListener],
        steps_per_run: int,
    ):
        self._steps_per_run = steps_per_run
        self._guards = guards
        self._directory = directory
        if every_steps is not None:
            self._timer = _Multiples(every_steps)
        else:
            self._timer = _v1.train.SecondOrStepTimer(every_secs=every_secs)

    def begin(self):
        self._step = _v1.train.get_global_step()
        for guard in self._guards:
            guard.begin()

    def after_create_session(self, session, coord):
        del coord
        self._timer.update_last_triggered_step(int(session.run(self._step)))

    def before_run(self, run_context):
        del run_context
        return _v1.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        # Read before or after the steps were counted.
        latest = int(run_values.results) + self._steps_per_run
        if not self._timer.should_trigger_for_step(latest):
            return
        step = int(run_context.session.run(self._step))
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        save_unless_saved(run_context.session, self._directory, step, self._guards)
