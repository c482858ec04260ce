"""The one adapter from a Keras model to an Estimator's model_fn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError


def _make(make_optimizer: Callable) -> tf_keras.optimizers.legacy.Optimizer:
    optimizer = make_optimizer()
    if not isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer):
        name = type(optimizer).__name__
        raise UserError(
            f"the optimizer {type(optimizer).__module__}.{name} does not work under an"
            f" Estimator; use one of tf_keras.optimizers.legacy, e.g. legacy.{name}"
        )
    return optimizer


def _sources(tensors: Iterable[tf.Tensor], known: Collection = ()) -> set:
    """Returns the operations that tensors or operations are computed from.

    Args:
      known: Operations behind which there is no need to look.
    """
    found = set()
    waiting = [getattr(tensor, "op", tensor) for tensor in tensors]
    while waiting:
        operation = waiting.pop()
        if operation not in found and operation not in known:
            found.add(operation)
            waiting += (tensor.op for tensor in operation.inputs)
            waiting += operation.control_inputs
    return found


def _of_this_call(items: Iterable, features: Mapping[str, tf.Tensor]) -> list:
    """Leaves out losses or updates that do not come from the features.

    A Functional model is called on placeholders when it is defined, and again on the
    features; its layers keep what they added in both calls.
    """
    ours = _sources(
        part
        for feature in features.values()
        for part in tf.nest.flatten(feature, expand_composites=True)
    )
    return [
        item
        for item in items
        if not any(op.type == "Placeholder" for op in _sources([item], ours))
    ]


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
      make_optimizer: Makes an optimizer of `tf_keras.optimizers.legacy`. A learning
        rate that is a number becomes a variable, so that training which goes on from
        a checkpoint keeps the old rate; a function or a schedule does not.
      head: An Estimator head; gives loss, metrics and export outputs.
    """

    def model_fn(features, labels, mode) -> estimator.EstimatorSpec:
        training = mode == estimator.ModeKeys.TRAIN
        model = build_model()
        logits = model(dict(features), training=training)
        optimizer = None
        if training:
            optimizer = _make(make_optimizer)
            optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            optimizer=optimizer,
            trainable_variables=model.trainable_variables,
            update_ops=_of_this_call(model.updates, features),
            regularization_losses=_of_this_call(model.losses, features) or None,
        )

    return model_fn
