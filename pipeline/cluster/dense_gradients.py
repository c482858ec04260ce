"""Lets workers in step exchange the gradients of embeddings.

TensorFlow gathers a sparse gradient from all workers, and in the graphs of Estimators
it fails as soon as its length differs from that of the first step. Exchanged as dense
tensors, gradients always have the same shape; each worker then moves a gradient as
large as the table.
"""

from __future__ import annotations

from typing import Any

from pipeline.compat import tf


def _dense(value: Any) -> Any:
    if isinstance(value, tf.IndexedSlices):
        return tf.convert_to_tensor(value)
    # With several devices there is one for each.
    parts = getattr(value, "values", ())
    if isinstance(parts, tuple) and any(
        isinstance(part, tf.IndexedSlices) for part in parts
    ):
        return type(value)(tuple(map(_dense, parts)))
    return value


def make_dense(strategy: tf.distribute.Strategy) -> tf.distribute.Strategy:
    """Makes a strategy reduce dense gradients; returns the strategy."""
    kind = type(strategy.extended)

    class DenseGradients(kind):
        """The strategy's own way to reduce, given dense values."""

        def _reduce_to(self, reduce_op, value, destinations, options):
            return super()._reduce_to(reduce_op, _dense(value), destinations, options)

        def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
            pairs = [(_dense(value), to) for value, to in value_destination_pairs]
            return super()._batch_reduce_to(reduce_op, pairs, options)

    # The coordinator copies the strategy for each task, and a class is copied along.
    strategy.extended.__class__ = DenseGradients
    return strategy
