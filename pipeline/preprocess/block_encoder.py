"""Blocks: one serialized tf.train.Example for the values of many rows.

A feature holds the values of all rows of the block, in their order, so a protobuf
message, a checksum and a call exist once a block and not once a row. A missing
value stands as 0 or the empty string, and its row's place in the block, from 0, is
listed in the int64 feature `NAME:missing`, which is absent where none is missing.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from pipeline.preprocess import row_bytes
from pipeline.preprocess import wire_format as wire
from pipeline.types import missing_feature


@dataclasses.dataclass(frozen=True, eq=False)
class _Values:
    """The encoded values of a column.

    Attributes:
      kind: The tag of the list in Feature.
      packed: Whether the values stand in one field.
      data: Their bytes, one after the other.
      ends: int64; where each row's bytes end, with a 0 in front.
    """

    kind: bytes
    packed: bool
    data: memoryview
    ends: np.ndarray

    def feature(self, start: int, stop: int) -> bytes:
        """A Feature of the values of some rows."""
        values = bytes(self.data[self.ends[start] : self.ends[stop]])
        if self.packed:
            values = wire.message(wire.FIELD_1, values)
        return wire.message(self.kind, values)


def encode(batch: pa.RecordBatch, block_rows: int) -> list[bytes]:
    """Encodes rows as blocks; the last one may hold fewer than `block_rows`.

    Args:
      batch: Columns of type int64, float32 or binary; null is a missing value.
      block_rows: Rows of a block.

    Raises:
      TypeError: A column has another type.
    """
    rows = batch.num_rows
    if not rows:
        return []
    features = {}
    for name in batch.schema.names:
        column = batch.column(name)
        features[name] = _values(name, column)
        if column.null_count:
            features[missing_feature(name)] = _missing(column, block_rows)
    entries = [
        (wire.message(wire.FIELD_1, name.encode()), features[name])
        for name in sorted(features)
    ]
    return [
        _block(entries, start, min(start + block_rows, rows))
        for start in range(0, rows, block_rows)
    ]


def _block(entries: list[tuple[bytes, _Values]], start: int, stop: int) -> bytes:
    encoded = []
    for key, values in entries:
        if values.ends[start] == values.ends[stop]:
            continue  # No row of this block is missing.
        feature = wire.message(wire.FIELD_2, values.feature(start, stop))
        encoded.append(wire.message(wire.FIELD_1, key + feature))
    return wire.message(wire.FIELD_1, b"".join(encoded))


def _values(name: str, column: pa.Array) -> _Values:
    if pa.types.is_int64(column.type):
        return _ints(row_bytes.numbers(column))
    if pa.types.is_float32(column.type):
        values = np.ascontiguousarray(row_bytes.numbers(column), "<f4")
        ends = np.arange(len(values) + 1, dtype=np.int64) * 4
        return _Values(wire.FLOAT_LIST, True, memoryview(values).cast("B"), ends)
    if pa.types.is_binary(column.type):
        return _strings(column)
    raise TypeError(f"column {name} has type {column.type}")


def _ints(values: np.ndarray, present: np.ndarray | None = None) -> _Values:
    """Ints; those that are not present take no bytes."""
    matrix, sizes = wire.varints(values)
    if present is not None:
        sizes = sizes * present
    kept = np.arange(matrix.shape[1]) < sizes[:, np.newaxis]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return _Values(wire.INT64_LIST, True, memoryview(matrix[kept]), ends)


def _strings(column: pa.Array) -> _Values:
    headers = wire.by_distinct(
        row_bytes.lengths(column),
        lambda size: wire.BYTES_LIST + wire.varint(size),
    )
    joined = row_bytes.join([headers, column])
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(column) + 1]
    return _Values(wire.BYTES_LIST, False, memoryview(data), ends)


def _missing(column: pa.Array, block_rows: int) -> _Values:
    places = np.arange(len(column), dtype=np.int64) % block_rows
    return _ints(places, ~row_bytes.present(column))
