"""Serialized tf.train.Examples made from a record batch, column by column.

A protobuf object per row costs 42 us for 19 columns; this costs below 2 us.
`wire_format` says what the bytes mean.

Each value becomes a map entry; the entries stand in the order of their column
names. A missing value has no entry.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.preprocess import row_bytes
from pipeline.preprocess import wire_format as wire


def encode(batch: pa.RecordBatch) -> list[bytes]:
    """Encodes each row as a serialized tf.train.Example.

    Args:
      batch: Columns of type int64, float32 or binary; null is a missing value.

    Raises:
      TypeError: A column has another type.
    """
    parts: list[pa.Array] = []
    for name in sorted(batch.schema.names):
        column = batch.column(name)
        if pa.types.is_binary(column.type):
            parts += _string_entries(name, column)
        elif pa.types.is_int64(column.type):
            parts.append(_int_entries(name, column))
        elif pa.types.is_float32(column.type):
            parts.append(_float_entries(name, column))
        else:
            raise TypeError(f"column {name} has type {column.type}")
    sizes = sum(map(row_bytes.lengths, parts), np.zeros(batch.num_rows, np.int64))
    headers = wire.by_distinct(sizes, lambda size: wire.FIELD_1 + wire.varint(size))
    return row_bytes.join([headers, *parts]).to_pylist()


def _int_entries(name: str, column: pa.Array) -> pa.Array:
    varints, sizes = wire.varints(row_bytes.numbers(column))
    # The prefix holds the lengths, so it depends on the size of the varint (1 to 10).
    prefixes = [
        _entry_prefix(
            name,
            wire.INT64_LIST,
            packed=wire.FIELD_1 + bytes([size]),
            size=size,
        )
        for size in range(1, 11)
    ]
    width = len(prefixes[0])
    if any(len(prefix) != width for prefix in prefixes):
        # Only where a name is about 110 bytes long does a length outgrow one byte.
        before = wire.by_distinct(
            sizes, lambda size: prefixes[size - 1], _missing(column)
        )
        return row_bytes.join([before, _where_present(column, varints, sizes)])
    table = np.frombuffer(b"".join(prefixes), np.uint8).reshape(10, width)
    matrix = np.concatenate([table[sizes - 1], varints], axis=1)
    return _where_present(column, matrix, width + sizes)


def _float_entries(name: str, column: pa.Array) -> pa.Array:
    prefix = _entry_prefix(name, wire.FLOAT_LIST, packed=wire.FIELD_1 + b"\x04", size=4)
    matrix = np.empty((len(column), len(prefix) + 4), np.uint8)
    matrix[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    values = np.ascontiguousarray(row_bytes.numbers(column), "<f4")
    matrix[:, len(prefix) :] = values.view(np.uint8).reshape(-1, 4)
    return _where_present(column, matrix)


def _string_entries(name: str, column: pa.Array) -> list[pa.Array]:
    """The entries in two parts: what precedes the value, and the value."""

    def prefix(size: int) -> bytes:
        before = wire.FIELD_1 + wire.varint(size)
        return _entry_prefix(name, wire.BYTES_LIST, packed=before, size=size)

    sizes = row_bytes.lengths(column)
    return [wire.by_distinct(sizes, prefix, missing=_missing(column)), column]


def _entry_prefix(name: str, kind: bytes, packed: bytes, size: int) -> bytes:
    """All of a map entry that precedes the value's own bytes.

    Args:
      name: The key.
      kind: The tag of the list in Feature.
      packed: Tag and length of the values in the list.
      size: The number of bytes of the value.
    """
    key = name.encode()
    of_list = len(packed) + size
    before_list = kind + wire.varint(of_list)
    before_feature = wire.FIELD_2 + wire.varint(len(before_list) + of_list)
    key_field = wire.FIELD_1 + wire.varint(len(key)) + key
    rest = before_feature + before_list + packed
    return (
        wire.FIELD_1 + wire.varint(len(key_field) + len(rest) + size) + key_field + rest
    )


def _where_present(
    column: pa.Array, matrix: np.ndarray, sizes: np.ndarray | None = None
) -> pa.Array:
    """Byte strings of a matrix's rows, empty where the column's value is missing."""
    if not column.null_count:
        return row_bytes.from_matrix(matrix, sizes)
    if sizes is None:
        sizes = np.full(len(matrix), matrix.shape[1], np.int64)
    return row_bytes.from_matrix(matrix, sizes * row_bytes.present(column))


def _missing(column: pa.Array) -> np.ndarray | None:
    return ~row_bytes.present(column) if column.null_count else None
