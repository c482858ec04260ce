"""Blocks, tf.Examples that hold many rows each, to feature tensors.

`pipeline.types.RecordForm` says what is in a block. What comes out is what
`parsing.parse` makes of the same rows in Examples of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from input_fns import parsing
from pipeline.compat import tf
from pipeline.types import Column, ColumnType, missing_feature


@dataclasses.dataclass(frozen=True)
class _Values:
    """A column of several blocks.

    Attributes:
      values: One for each row; 0 or the empty string where it is missing.
      missing: int64, which rows have no value; None where the column is required.
    """

    values: tf.Tensor
    missing: tf.Tensor | None


def _decode(serialized: tf.Tensor, columns: Sequence[Column]) -> dict[str, _Values]:
    spec = {
        c.name: tf.io.RaggedFeature(parsing.dtype(c), row_splits_dtype=tf.int64)
        for c in columns
    }
    optional = [c for c in columns if not c.required]
    places = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    spec.update({missing_feature(c.name): places for c in optional})
    parsed = tf.io.parse_example(serialized, spec)
    decoded = {}
    for column in columns:
        values = parsed[column.name]
        missing = None
        if not column.required:
            places = parsed[missing_feature(column.name)]
            missing = places.values + tf.repeat(
                values.row_starts(), places.row_lengths()
            )
        decoded[column.name] = _Values(values.values, missing)
    return decoded


def parse(serialized: tf.Tensor, columns: Iterable[Column]) -> parsing.Features:
    """Parses blocks.

    Args:
      serialized: string, shape [blocks].
      columns: The columns to read, at least one.

    Returns:
      Column name to a tensor of shape [rows of all blocks].
    """
    columns = tuple(columns)
    features = {}
    for column, decoded in zip(
        columns, _decode(serialized, columns).values(), strict=True
    ):
        value = decoded.values
        if decoded.missing is not None:
            default = tf.fill(
                tf.shape(decoded.missing), tf.constant(column.default, value.dtype)
            )
            value = tf.tensor_scatter_nd_update(
                value, decoded.missing[:, tf.newaxis], default
            )
        features[column.name] = value
    return features


def to_rows(serialized: bytes, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yields each row of a block as a serialized tf.Example of its own.

    For a few rows: it makes an object of each value. Needs no graph or session.
    """
    feature = tf.train.Example.FromString(serialized).features.feature
    lists = {
        ColumnType.INT: "int64_list",
        ColumnType.FLOAT: "float_list",
        ColumnType.STRING: "bytes_list",
    }
    kept = []
    for column in columns:
        missing = set(feature[missing_feature(column.name)].int64_list.value)
        values = getattr(feature[column.name], lists[column.type]).value
        kept.append((column.name, lists[column.type], values, missing))
    for row in range(len(kept[0][2])):
        example = tf.train.Example()
        for name, kind, values, missing in kept:
            if row not in missing:
                getattr(example.features.feature[name], kind).value.append(values[row])
        yield example.SerializeToString()
