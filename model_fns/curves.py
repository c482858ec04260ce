"""Curves of an optimizer in TensorBoard: its learning rate, and how long gradients are.

Nothing here is computed in a step for which no summary is written, but the learning
rate, which is one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.compat import tf, tf_keras

_v1 = tf.compat.v1


def _is_first_replica() -> bool:
    """Whether this replica's summaries are written; a tag may be there once only."""
    replica = tf.distribute.get_replica_context()
    if replica is None:
        return True
    number = replica.replica_id_in_sync_group
    if tf.is_tensor(number):
        number = tf.get_static_value(number)
    return not number


def _add(tag: str, value: tf.Tensor) -> None:
    if _is_first_replica():
        # Not summary.scalar, whose name would depend on the scope and on other names.
        summary = tf.raw_ops.ScalarSummary(tags=tag, values=value)
        _v1.add_to_collection(_v1.GraphKeys.SUMMARIES, summary)


def _tag(name: str, part: str) -> str:
    return f"{name}/{part}" if part else name


def report_rate(optimizer: Any, part: str = "") -> list[tf.Tensor]:
    """Adds the learning rate to the summaries, where it is known, and returns it.

    The caller changes variables after it, so that it is the rate of this step.

    Args:
      optimizer: One of Keras or of TensorFlow 1.
      part: The part of the model that it trains, where that has several optimizers.
    """
    if isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer):
        rate = optimizer._decayed_lr(tf.float32)
    else:
        rate = getattr(optimizer, "_lr", getattr(optimizer, "_learning_rate", None))
        rate = rate() if callable(rate) else rate
        if rate is None:
            return []
    rate = tf.cast(rate, tf.float32)
    _add(_tag("learning_rate", part), rate)
    return [rate]


def report_gradients(gradients: Iterable, part: str = "") -> None:
    """Adds the global norm of the gradients, before any clipping, to the summaries.

    Of a gradient with rows of an embedding, rows that occur several times in a batch
    count one by one. Over several replicas it is that of the first one.
    """
    found = [gradient for gradient in gradients if gradient is not None]
    if found:
        _add(_tag("gradient_norm", part), tf.linalg.global_norm(found))


def watched(optimizer: Any, part: str = "") -> Any:
    """Lets a Keras optimizer report what it does, for who only applies it.

    Args:
      optimizer: One of tf_keras.optimizers.legacy; it is changed.
      part: As of `report_rate`.
    """
    apply = optimizer.apply_gradients

    def apply_gradients(grads_and_vars: Iterable, *args, **kwargs):
        pairs: Sequence = list(grads_and_vars)
        report_gradients((gradient for gradient, _ in pairs), part)
        with tf.control_dependencies(report_rate(optimizer, part)):
            return apply(pairs, *args, **kwargs)

    optimizer.apply_gradients = apply_gradients
    return optimizer
