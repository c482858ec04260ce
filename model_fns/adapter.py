"""The one adapter from a Keras model to an Estimator's model_fn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.compat import estimator, tf, tf_keras


def model_fn_from_keras(
    build_model: Callable[[], tf_keras.Model],
    make_optimizer: Callable[[], tf_keras.optimizers.legacy.Optimizer],
    head: Any,
) -> Callable[..., estimator.EstimatorSpec]:
    """Wraps a Keras model of any kind (Sequential, Functional, Subclassed).

    What a plain model_fn around Keras layers forgets is collected here: the
    optimizer counts in the Estimator's global step (else training never ends),
    BatchNormalization's moving averages are updated with each step, and the losses
    that layers add (regularisation) are part of the loss.

    Args:
      build_model: Makes the model; called in the graph of each mode. The model takes
        a dict of raw columns ([batch] each) and returns logits [batch, n].
      make_optimizer: Makes a legacy Keras optimizer.
      head: An Estimator head; gives loss, metrics and export outputs.
    """

    def model_fn(features, labels, mode) -> estimator.EstimatorSpec:
        training = mode == estimator.ModeKeys.TRAIN
        model = build_model()
        logits = model(dict(features), training=training)
        optimizer = None
        if training:
            optimizer = make_optimizer()
            optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            optimizer=optimizer,
            trainable_variables=model.trainable_variables,
            update_ops=model.updates,
            regularization_losses=model.losses or None,
        )

    return model_fn
