"""Options of how an Estimator is run, applied to one."""

from __future__ import annotations

from collections.abc import Callable

from model_fns import metrics, step_loop
from pipeline.compat import estimator, tf, tf_keras
from pipeline.estimator_options import EstimatorOptions
from pipeline.types import Declaration, UserError

_v1 = tf.compat.v1


def session_config(
    options: EstimatorOptions, base: tf.compat.v1.ConfigProto | None = None
) -> tf.compat.v1.ConfigProto | None:
    """Returns what `RunConfig` needs; None stands for its default.

    Args:
      base: What other options ask for.
    """
    if not options.xla:
        return base
    config = _v1.ConfigProto(allow_soft_placement=True)
    if base is not None:
        config.CopyFrom(base)
    level = _v1.OptimizerOptions.ON_1
    config.graph_options.optimizer_options.global_jit_level = level
    return config


def _in_bfloat16(model_fn: Callable) -> Callable:
    """Builds the graph of each mode under the policy; nothing else is built so."""
    precision = tf_keras.mixed_precision

    def wrapped(features, labels, mode, config):
        before = precision.global_policy()
        precision.set_global_policy("mixed_bfloat16")
        try:
            return model_fn(features, labels, mode, config)
        finally:
            precision.set_global_policy(before)

    return wrapped


def apply(
    trained: estimator.Estimator, options: EstimatorOptions, declaration: Declaration
) -> estimator.Estimator:
    """Returns the Estimator with further metrics, and in bfloat16 where asked for."""
    if options.mixed_precision:
        trained = estimator.Estimator(
            _in_bfloat16(trained.model_fn), config=trained.config
        )
    return metrics.add(trained, options.metrics, declaration)


def in_loops(
    trained: estimator.Estimator, loop: step_loop.StepLoop
) -> estimator.Estimator:
    """Returns the Estimator, training several steps in a call of the session.

    Training raises:
      UserError: The model is not one that our adapter made from Keras layers.
    """
    model_fn = trained.model_fn

    def looping(features, labels, mode, config):
        if mode != estimator.ModeKeys.TRAIN:
            return model_fn(features, labels, mode, config)
        step_loop.ask(loop)
        spec = model_fn(features, labels, mode, config)
        if step_loop.take() is not None:
            raise UserError(
                "--steps_per_run has no effect on this model, which is not made of Keras"
                " layers; leave it out"
            )
        return spec

    return estimator.Estimator(looping, config=trained.config)
