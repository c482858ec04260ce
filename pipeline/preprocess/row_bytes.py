"""Byte strings of rows, put together column by column.

Both the split hash and the tf.Example encoder need one byte string a row. Making
it in Python costs microseconds a row and column; joining Arrow arrays costs
nanoseconds. Large (64-bit offset) arrays are used so that no batch is too big.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EMPTY = pa.scalar(b"", pa.large_binary())


def from_matrix(
    matrix: np.ndarray, lengths: np.ndarray | None = None
) -> pa.LargeBinaryArray:
    """Makes one byte string of each row of a matrix.

    Args:
      matrix: uint8 of shape [rows, width].
      lengths: How many leading bytes of each row count; None means all.
    """
    rows, width = matrix.shape
    if lengths is None:
        offsets = np.arange(rows + 1, dtype=np.int64) * width
        data = np.ascontiguousarray(matrix)
    else:
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = matrix[np.arange(width) < np.asarray(lengths)[:, np.newaxis]]
    return pa.Array.from_buffers(
        pa.large_binary(),
        rows,
        [None, pa.py_buffer(offsets), pa.py_buffer(data.reshape(-1))],
    )


def join(parts: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    """Concatenates binary arrays of equal length row by row; null adds nothing."""
    wide = [
        part if pa.types.is_large_binary(part.type) else part.cast(pa.large_binary())
        for part in parts
    ]
    return pc.binary_join_element_wise(
        *wide, _EMPTY, null_handling="replace", null_replacement=b""
    )


def lengths(array: pa.Array) -> np.ndarray:
    """The number of bytes of each value as int64; 0 for null."""
    counts = pc.binary_length(array).cast(pa.int64())
    return counts.fill_null(0).to_numpy(zero_copy_only=False)


def numbers(array: pa.Array) -> np.ndarray:
    """The values of a number column; 0 for null."""
    return array.fill_null(0).to_numpy(zero_copy_only=False)


def present(array: pa.Array) -> np.ndarray:
    """Booleans: where a value is not null."""
    return array.is_valid().to_numpy(zero_copy_only=False)
