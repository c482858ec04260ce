"""Guards against NaN and infinity in the weights, which the loss need not show.

A ReLU turns NaN into 0, so a network whose weights are all NaN can have a finite loss.
"""

from __future__ import annotations

from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

_v1 = tf.compat.v1


class NanWeightsListener(_v1.train.CheckpointSaverListener):
    """Checks all variables before each checkpoint; a bad one is never written.

    All hooks that save in a session can share one. In `before_save` it raises UserError
    (BAD_DATA) naming the first variable that is not finite.
    """

    def __init__(self):
        self._graph: tf.Graph | None = None
        self._finite: dict[str, tf.Tensor] = {}

    def begin(self):
        graph = _v1.get_default_graph()
        if graph is self._graph:
            return
        self._graph = graph
        # Trainable ones first, since they tell most.
        variables = [*_v1.trainable_variables(), *_v1.global_variables()]
        unique = {v.op.name: v for v in variables if v.dtype.is_floating}
        with tf.name_scope("finite_weights"):
            self._finite = {
                name: tf.reduce_all(tf.math.is_finite(variable))
                for name, variable in unique.items()
            }

    def before_save(self, session, global_step_value):
        for name, finite in session.run(self._finite).items():
            if not finite:
                raise UserError(
                    f"train: at step {global_step_value} the variable {name} holds NaN"
                    " or infinity; no checkpoint is written of it, the last one is from"
                    " before. Try a lower learning_rate or clip_norm=1 in --hparams, and"
                    " look for extreme values with `show`",
                    ExitCode.BAD_DATA,
                )
