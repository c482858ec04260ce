"""What happens to raw values inside the model's graph, as functions of tensors.

Feature columns (premade Estimators) and Keras layers (custom ones) both come down
to these, so a feature has one meaning.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.compat import tf
from pipeline.types import Scale, Scaling


def scaled(value: tf.Tensor, scale: Scale, scaling: Scaling) -> tf.Tensor:
    """Returns a number scaled as `types.Scale` defines it, float32."""
    # What float32 rounds off may be most of the difference between large numbers.
    value = tf.cast(value, tf.float64)
    if scale is Scale.LOG:
        value = tf.sign(value) * tf.math.log1p(tf.abs(value))
    return tf.cast((value - scaling.shift) * scaling.factor, tf.float32)


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


def crossed_ids(parts: Sequence[tf.Tensor], buckets: int) -> tf.Tensor:
    """Returns int64 hash buckets of combinations, as the crossed column does.

    Args:
      parts: int64 ids or strings, each of shape [batch].
    """
    crossed = tf.sparse.cross_hashed([part[:, tf.newaxis] for part in parts], buckets)
    # Dense [batch, 1] inputs make exactly one combination a row.
    return tf.reshape(crossed.values, tf.shape(parts[0]))
