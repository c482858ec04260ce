"""Division of rows into splits, mostly by a hash of their key.

A row's split depends on nothing but its key's values and the salt: not on the
file, the batch, the order, the machine or the time. So a row that comes again
tomorrow stays in its split, and exact duplicates never stand on both sides.

The hashed bytes of a row are the fixed-width fields of all key columns, in order,
followed by the bytes of its string columns, in order. A field is one byte 1 and
then 8 bytes of the int64, 4 of the float32, or the string's length in 8 bytes, all
little-endian; a missing value is all zeros. With the columns' types fixed by the
declaration the encoding is unambiguous. -0.0 stands as 0.0 and every NaN as one.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline.preprocess import declared_splits, row_bytes
from pipeline.preprocess.number_text import Failures
from pipeline.types import AnySplit, Split, WindowSplit


def assign(batch: pa.RecordBatch, split: AnySplit) -> np.ndarray:
    """Says to which split each row belongs.

    Args:
      batch: Columns of type int64, float32 or binary; null is a missing value.
      split: How to divide. An empty key of a Split means all columns of the
        batch, which must then stand in declared order in every batch.

    Returns:
      An int64 index into `split.names` for each row; -1 for a row that `failures`
      names.

    Raises:
      KeyError: A key column is not in the batch.
      TypeError: A key column has another type.
    """
    if isinstance(split, WindowSplit):
        return np.zeros(batch.num_rows, np.int64)
    if not isinstance(split, Split):
        return declared_splits.assign(batch, split)
    hashes = np.frombuffer(
        b"".join(_digests(key_bytes(batch, split.key), split.salt)), "<u8"
    )
    # 53 bits are what a float64 holds, so the point is exact and below 1.
    points = (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
    cuts = np.cumsum(list(split.fractions.values()))[:-1]
    return np.searchsorted(cuts, points, side="right").astype(np.int64)


def failures(batch: pa.RecordBatch, split: AnySplit) -> Failures:
    """Says by row why it belongs to no split."""
    if isinstance(split, (Split, WindowSplit)):
        return {}
    return declared_splits.failures(batch, split)


@dataclasses.dataclass(frozen=True, eq=False)
class DividedRows:
    """Rows sorted by split; within a split they stand as they came.

    Attributes:
      table: The rows.
      parts: Split, first row and end of each split that has rows.
    """

    table: pa.RecordBatch
    parts: tuple[tuple[str, int, int], ...]

    def by_split(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Each split that has rows, and them; nothing is copied."""
        for split, start, stop in self.parts:
            yield split, self.table.slice(start, stop - start)


def divide(batch: pa.RecordBatch, split: AnySplit) -> DividedRows:
    """Sorts rows by their split; see `assign`."""
    numbers = assign(batch, split)
    ends = np.cumsum(np.bincount(numbers, minlength=len(split.names))).tolist()
    starts = [0, *ends]
    parts = tuple(
        (name, start, end)
        for name, start, end in zip(split.names, starts, ends, strict=False)
        if start < end
    )
    # One sorted copy costs less than one filtered copy a split.
    order = np.argsort(numbers, kind="stable")
    return DividedRows(batch.take(pa.array(order)), parts)


def key_bytes(batch: pa.RecordBatch, key: tuple[str, ...] = ()) -> list[bytes]:
    """The bytes of each row that are hashed; see the module's docstring."""
    names = key or tuple(batch.schema.names)
    columns = [batch.column(name) for name in names]
    if not columns:
        return [b""] * batch.num_rows
    fixed = np.concatenate([_field(column) for column in columns], axis=1)
    strings = [c for c in columns if pa.types.is_binary(c.type)]
    return row_bytes.join([row_bytes.from_matrix(fixed), *strings]).to_pylist()


def _field(column: pa.Array) -> np.ndarray:
    """The fixed-width field of a column as uint8 of shape [rows, width]."""
    if pa.types.is_int64(column.type):
        values = row_bytes.numbers(column).astype("<i8")
    elif pa.types.is_float32(column.type):
        values = (row_bytes.numbers(column) + np.float32(0)).astype("<f4")
        values[np.isnan(values)] = np.nan
    elif pa.types.is_binary(column.type):
        values = row_bytes.lengths(column).astype("<i8")
    else:
        raise TypeError(f"a key column has type {column.type}")
    width = values.dtype.itemsize
    field = np.empty((len(column), 1 + width), np.uint8)
    field[:, 0] = row_bytes.present(column)
    field[:, 1:] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)
    return field


def _digests(keys: list[bytes], salt: str) -> list[bytes]:
    # The salt parameter takes 16 bytes; the user's text may be of any length.
    salt_bytes = hashlib.blake2b(salt.encode(), digest_size=16).digest()
    blake2b = hashlib.blake2b
    return [blake2b(key, digest_size=8, salt=salt_bytes).digest() for key in keys]
