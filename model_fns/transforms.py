"""What happens to raw values inside the model's graph, as functions of tensors.

Feature columns (premade Estimators) and Keras layers (custom ones) both come down
to these, so a feature has one meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from pipeline.compat import tf
from pipeline.types import Date, Numeric, Scale, Scaling


def scaled(
    value: tf.Tensor,
    scale: Scale,
    scaling: Scaling,
    clip: tuple[float, float] | None = None,
) -> tf.Tensor:
    """Returns a number scaled as `types.Scale` defines it, float32.

    Args:
      value: Of any number type.
      scale: The way.
      scaling: Its constants.
      clip: Lowest and highest number before scaling.
    """
    # What float32 rounds off may be most of the difference between large numbers.
    value = tf.cast(value, tf.float64)
    if clip is not None:
        value = tf.clip_by_value(value, *clip)
    if scale is Scale.LOG:
        value = tf.sign(value) * tf.math.log1p(tf.abs(value))
    return tf.cast((value - scaling.shift) * scaling.factor, tf.float32)


def scaled_feature(
    value: tf.Tensor, feature: Numeric | Date, scaling: Scaling
) -> tf.Tensor:
    """Returns the number of a feature as the model gets it, float32.

    Args:
      value: What `categories.number` says of it, any shape.
      feature: The feature; of a date NaN, which stands for no date, gives 0.
      scaling: Its constants.
    """
    if isinstance(feature, Date):
        result = scaled(value, feature.scale, scaling)
        return tf.where(tf.math.is_nan(value), tf.zeros_like(result), result)
    return scaled(value, feature.scale, scaling, feature.clip)


def bucket_ids(value: tf.Tensor, boundaries: Sequence[float]) -> tf.Tensor:
    """Returns bucket numbers, int64: i where boundaries[i-1] <= x < boundaries[i]."""
    buckets = tf.raw_ops.Bucketize(
        input=tf.cast(value, tf.float32), boundaries=list(boundaries)
    )
    return tf.cast(buckets, tf.int64)


def category_text(value: tf.Tensor) -> tf.Tensor:
    """Returns the categories of a raw column as text; ints in decimal."""
    return value if value.dtype == tf.string else tf.strings.as_string(value)


def identity_ids(value: tf.Tensor, buckets: int) -> tf.Tensor:
    """Returns int64 ids below `buckets` as they are, and `buckets` for all others."""
    inside = tf.logical_and(value >= 0, value < buckets)
    return tf.where(inside, value, tf.constant(buckets, tf.int64))


def hashed_ids(text: tf.Tensor, buckets: int) -> tf.Tensor:
    """Returns int64 hash buckets of strings, as the hashed feature column does."""
    return tf.strings.to_hash_bucket_fast(text, buckets)


Categories = Union[tf.Tensor, tf.RaggedTensor]
"""Ids or texts: one a row, [batch], or any number a row, ragged [batch, None]."""


def one_a_row(values: tf.Tensor) -> tf.SparseTensor:
    """Returns text or ids [batch] as sparse [batch, 1].

    Of a dense tensor feature columns drop the empty text (and the int -1), and in a
    cross they put dense parts after the sparse ones.
    """
    rows = tf.size(values, tf.int64)
    indices = tf.stack([tf.range(rows), tf.zeros([rows], tf.int64)], axis=1)
    return tf.SparseTensor(indices, values, tf.stack([rows, 1]))


def to_sparse(values: Categories) -> tf.SparseTensor:
    """Returns them as feature columns read them, sparse [batch, most in a row]."""
    if isinstance(values, tf.RaggedTensor):
        return values.to_sparse()
    return one_a_row(values)


def crossed_ids(parts: Sequence[Categories], buckets: int) -> Categories:
    """Returns int64 hash buckets of combinations, as the crossed column does.

    Args:
      parts: int64 ids or strings. With several a row all combinations count.
    """
    crossed = tf.sparse.cross_hashed([to_sparse(part) for part in parts], buckets)
    if any(isinstance(part, tf.RaggedTensor) for part in parts):
        return tf.RaggedTensor.from_sparse(crossed)
    # One value a row each makes exactly one combination a row.
    return tf.reshape(crossed.values, tf.shape(parts[0]))
