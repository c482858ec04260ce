"""Tables of learned vectors, and what a row's ids give of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Union

from pipeline.compat import tf, tf_keras
from pipeline.types import Combiner


class Weighted(NamedTuple):
    """Ids with weights.

    Attributes:
      ids: int64 [batch] or ragged [batch, None].
      weights: float32 of the same shape, not below 0.
    """

    ids: tf.Tensor | tf.RaggedTensor
    weights: tf.Tensor | tf.RaggedTensor


Category = Union[tf.Tensor, tf.RaggedTensor, Weighted]
"""int64 ids: [batch] if each row has one, or ragged [batch, None], or Weighted."""


class _Bag(NamedTuple):
    """Ids of all rows one after another.

    Attributes:
      ids: int64 [n].
      rows: The row of each, int64 [n].
      weights: float32 [n]; 1 where none were given.
      batch: Number of rows, int64.
    """

    ids: tf.Tensor
    rows: tf.Tensor
    weights: tf.Tensor
    batch: tf.Tensor


def _bag(category: Category) -> _Bag:
    ids, weights = category, None
    if isinstance(category, Weighted):
        ids, weights = category
    if isinstance(ids, tf.RaggedTensor):
        flat, rows, batch = ids.flat_values, ids.value_rowids(), ids.nrows()
        weights = None if weights is None else weights.flat_values
    else:
        flat, batch = ids, tf.size(ids, tf.int64)
        rows = tf.range(batch)
    if weights is None:
        weights = tf.ones_like(flat, tf.float32)
    return _Bag(flat, rows, weights, batch)


def rows(encoded: Mapping[str, tf.Tensor | Category]) -> tf.Tensor:
    """Returns the number of rows of encoded features."""
    first = next(iter(encoded.values()))
    if isinstance(first, Weighted):
        first = first.ids
    if isinstance(first, tf.RaggedTensor):
        return tf.cast(first.nrows(), tf.int32)
    return tf.shape(first)[0]


def counts(category: Category, size: int) -> tf.Tensor:
    """Returns how often a row has each id, or their weights: float32 [batch, size]."""
    if not isinstance(category, (tf.RaggedTensor, Weighted)):
        return tf.one_hot(category, size)
    bag = _bag(category)
    places = tf.stack([bag.rows, bag.ids], axis=1)
    found = tf.scatter_nd(places, bag.weights, tf.stack([bag.batch, size]))
    return tf.ensure_shape(found, [None, size])


def _combined(vectors: tf.Tensor, bag: _Bag, combiner: Combiner) -> tf.Tensor:
    """Returns [batch, width] from one vector an id, [n, width]."""

    def total(values: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(values, bag.rows, bag.batch)

    weights = bag.weights[:, tf.newaxis]
    result = total(vectors * weights)
    if combiner is Combiner.MEAN:
        return tf.math.divide_no_nan(result, total(weights))
    if combiner is Combiner.SQRTN:
        return tf.math.divide_no_nan(result, tf.sqrt(total(weights**2)))
    return result


class Table(tf_keras.layers.Layer):
    """A learned vector for each id of a feature.

    Call it with ids and, where a row may have several or weights, how they are
    combined; it returns float32 [batch, width].
    """

    def __init__(self, ids: int, width: int, initializer, regularizer, name: str):
        super().__init__(name=name, dtype="float32")
        self._embedding = tf_keras.layers.Embedding(
            ids,
            width,
            dtype="float32",
            embeddings_initializer=initializer,
            embeddings_regularizer=regularizer,
            name="table",
        )

    def call(self, category: Category, combiner: Combiner = Combiner.MEAN) -> tf.Tensor:
        if not isinstance(category, (tf.RaggedTensor, Weighted)):
            return self._embedding(category)
        bag = _bag(category)
        return _combined(self._embedding(bag.ids), bag, combiner)


def narrow_normal(width: int, seed: int):
    """As the embedding feature column initialises its table."""
    return tf_keras.initializers.TruncatedNormal(stddev=width**-0.5, seed=seed)
