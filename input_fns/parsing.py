"""tf.Examples to feature tensors: one rule for training, evaluation and serving."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from pipeline.compat import tf
from pipeline.types import Column, ColumnType, OutOfRange

Features = dict[str, "tf.Tensor"]


def dtype(column: Column) -> tf.DType:
    """Returns the tensor type of a raw column."""
    return {
        ColumnType.INT: tf.int64,
        ColumnType.FLOAT: tf.float32,
        ColumnType.STRING: tf.string,
    }[column.type]


def feature_spec(columns: Iterable[Column]) -> dict[str, tf.io.FixedLenFeature]:
    """Returns what `tf.io.parse_example` needs to read these columns.

    A column with a default may be absent from an Example and then has the
    default; a required one may not.
    """
    return {
        column.name: tf.io.FixedLenFeature([], dtype(column), column.default)
        for column in columns
    }


def parse(serialized: tf.Tensor, columns: Iterable[Column]) -> Features:
    """Parses serialized tf.Examples.

    Args:
      serialized: string, shape [batch].
      columns: The columns to read.

    Returns:
      Column name to a tensor of shape [batch]: int64, float32 or string.
    """
    return tf.io.parse_example(serialized, feature_spec(columns))


def parse_request(serialized: tf.Tensor, columns: Sequence[Column]) -> Features:
    """Parses tf.Examples that clients made; else as `parse`.

    A feature with an empty list of values is as good as an absent one; `parse`, a
    third faster, takes it for an error, which is fine for records of our own.
    """
    spec = {}
    for column in columns:
        if column.required:
            spec[column.name] = feature_spec([column])[column.name]
        else:
            spec[column.name] = tf.io.FixedLenSequenceFeature(
                [], dtype(column), allow_missing=True, default_value=column.default
            )
    parsed = tf.io.parse_example(serialized, spec)
    for column in columns:
        if not column.required:
            parsed[column.name] = _only_value(parsed[column.name], column)
    return parsed


def _only_value(values: tf.Tensor, column: Column) -> tf.Tensor:
    """Returns [batch], from values [batch, most in a row] padded with the default."""
    most = tf.shape(values)[1]
    check = tf.debugging.Assert(
        most <= 1,
        [f"feature {column.name} has more than one value in an Example:", most],
    )
    with tf.control_dependencies([check]):
        # No row has a value where the width is 0.
        padding = [[0, 0], [0, tf.maximum(0, 1 - most)]]
    default = tf.constant(column.default, values.dtype)
    return tf.pad(values, padding, constant_values=default)[:, 0]


def _is_one_of(value: tf.Tensor, listed: Sequence) -> tf.Tensor:
    """Returns where a value [batch] is one of those listed: bool [batch]."""
    # Comparing [batch, 1] with [1, listed] would copy every text.
    return functools.reduce(tf.logical_or, [tf.equal(value, one) for one in listed])


def _is_missing(value: tf.Tensor, column: Column) -> tf.Tensor | None:
    if column.type is ColumnType.FLOAT:
        return tf.math.is_nan(value)
    if column.type is ColumnType.STRING:
        return _is_one_of(tf.strings.strip(value), column.missing)
    return None


def apply_missing_rule(features: Mapping[str, tf.Tensor], columns: Iterable[Column]):
    """Treats a request's values as preprocess treats the fields of a file.

    NaN in a float column and a marker in a string column mean "no value": they
    become the column's default; without one the request fails with an error that
    names the column. An int64 tensor cannot say "no value": leave the column out
    of the Example, or send its default.

    Args:
      features: Column name to tensor of shape [batch].
      columns: The columns, in any order.

    Returns:
      The same names and shapes.
    """
    cleaned = dict(features)
    for column in columns:
        value = features[column.name]
        missing = _is_missing(value, column)
        if missing is None:
            continue
        if column.default is not None:
            default = tf.constant(column.default, value.dtype)
            cleaned[column.name] = tf.where(missing, default, value)
            continue
        check = tf.debugging.Assert(
            tf.logical_not(tf.reduce_any(missing)),
            [f"feature {column.name} is required and has no value in this request"],
        )
        with tf.control_dependencies([check]):
            cleaned[column.name] = tf.identity(value)
    return cleaned


def _outside(value: tf.Tensor, column: Column) -> tf.Tensor:
    """Where a value is not allowed; the default always is."""
    if column.values is not None:
        outside = tf.logical_not(_is_one_of(value, column.values))
    else:
        outside = tf.zeros_like(value, tf.bool)
    if column.min is not None:
        outside |= value < tf.constant(column.min, value.dtype)
    if column.max is not None:
        outside |= value > tf.constant(column.max, value.dtype)
    if column.default is not None:
        outside &= tf.not_equal(value, tf.constant(column.default, value.dtype))
    return outside


def _clipped(value: tf.Tensor, column: Column) -> tf.Tensor:
    if column.min is not None:
        value = tf.maximum(value, tf.constant(column.min, value.dtype))
    if column.max is not None:
        value = tf.minimum(value, tf.constant(column.max, value.dtype))
    return value


def apply_range_rule(features: Mapping[str, tf.Tensor], columns: Iterable[Column]):
    """Treats values that a column does not allow as preprocess does.

    They are clipped or become the default, as the column's `out_of_range` says; by
    default the request fails with an error that names the column.

    Args:
      features: Column name to tensor of shape [batch], after `apply_missing_rule`.
      columns: The columns, in any order.

    Returns:
      The same names and shapes.
    """
    ruled = dict(features)
    for column in columns:
        if not column.restricted:
            continue
        value = features[column.name]
        outside = _outside(value, column)
        if column.out_of_range is OutOfRange.CLIP:
            ruled[column.name] = tf.where(outside, _clipped(value, column), value)
        elif column.out_of_range is OutOfRange.MISSING:
            default = tf.constant(column.default, value.dtype)
            ruled[column.name] = tf.where(outside, default, value)
        else:
            check = tf.debugging.Assert(
                tf.logical_not(tf.reduce_any(outside)),
                [
                    f"feature {column.name} has a value in this request that is not"
                    " allowed:",
                    tf.boolean_mask(value, outside),
                ],
            )
            with tf.control_dependencies([check]):
                ruled[column.name] = tf.identity(value)
    return ruled
