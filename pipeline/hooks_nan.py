"""Guards against NaN and infinity in the weights, which the loss need not show.

A ReLU turns NaN into 0, so a network whose weights are all NaN can have a finite loss.
"""

from __future__ import annotations

from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

_v1 = tf.compat.v1


class _Finite:
    """Ops that tell whether each variable that a checkpoint holds is finite."""

    def __init__(self):
        # Trainable ones first, since they tell most.
        variables = [*_v1.trainable_variables(), *_v1.global_variables()]
        unique = {v.op.name: v for v in variables if v.dtype.is_floating}
        self._names = list(unique)
        with tf.name_scope("finite_weights"):
            self._flags = [tf.reduce_all(tf.math.is_finite(v)) for v in unique.values()]

    def check(self, session, step: int) -> None:
        """Raises UserError (BAD_DATA) naming the first variable that is not."""
        flags = session.run(self._flags)
        for name, finite in zip(self._names, flags, strict=True):
            if not finite:
                raise UserError(
                    f"train: at step {step} the variable {name} holds NaN or infinity;"
                    " no checkpoint is written of it, the last one is from before."
                    " Try a lower learning_rate or clip_norm=1 in --hparams, and look"
                    " for extreme values with `show`",
                    ExitCode.BAD_DATA,
                )


class NanWeightsListener(_v1.train.CheckpointSaverListener):
    """Checks all variables before each checkpoint; a bad one is never written.

    For `TrainSpec(saving_listeners=[...])` or `Estimator.train`.
    """

    def __init__(self):
        self._finite: _Finite | None = None

    def begin(self):
        self._finite = _Finite()

    def before_save(self, session, global_step_value):
        self._finite.check(session, global_step_value)


class NanWeightsHook(_v1.train.SessionRunHook):
    """Checks all variables every so many steps, between checkpoints.

    Args:
      every_steps: Steps between checks; each reads all weights once.
    """

    def __init__(self, every_steps: int):
        self._every = every_steps
        self._finite: _Finite | None = None
        self._step: tf.Tensor | None = None

    def begin(self):
        self._finite = _Finite()
        self._step = _v1.train.get_global_step()

    def before_run(self, run_context):
        del run_context
        return _v1.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        # The step's variable may be read before or after it is moved.
        if int(run_values.results) % self._every == 0:
            step = int(run_context.session.run(self._step))
            self._finite.check(run_context.session, step)
