"""What happens to raw values inside the model's graph, as functions of tensors.

Feature columns (premade Estimators) and Keras layers (custom ones) both come down
to these, so a feature has one meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.compat import tf
from pipeline.types import Column, ColumnType, Declaration, Scale, Scaling


def scaled(value: tf.Tensor, scale: Scale, scaling: Scaling) -> tf.Tensor:
    """Returns a number scaled as `types.Scale` defines it, float32."""
    value = tf.cast(value, tf.float32)
    if scale is Scale.LOG:
        value = tf.sign(value) * tf.math.log1p(tf.abs(value))
    return (value - scaling.shift) * scaling.factor


def bucket_ids(value: tf.Tensor, boundaries: Sequence[float]) -> tf.Tensor:
    """Returns bucket numbers, int64: i where boundaries[i-1] <= x < boundaries[i]."""
    buckets = tf.raw_ops.Bucketize(
        input=tf.cast(value, tf.float32), boundaries=list(boundaries)
    )
    return tf.cast(buckets, tf.int64)


def category_key(column: Column) -> str:
    """Returns the name under which a column's categories stand as text."""
    if column.type is ColumnType.STRING:
        return column.name
    return f"{column.name}_as_text"


def with_category_text(
    features: Mapping[str, tf.Tensor], declaration: Declaration
) -> dict[str, tf.Tensor]:
    """Adds the decimal text of int columns, under `category_key`.

    Feature columns take the int64 value -1 for "missing" and drop it; as text it
    is a value like any other.
    """
    added = dict(features)
    for column in declaration.input_columns:
        if column.type is ColumnType.INT:
            added[category_key(column)] = tf.strings.as_string(features[column.name])
    return added


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
