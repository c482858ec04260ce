"""Arrow tables to the arrays that `input_fns.arrays` takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from input_fns.arrays import Loader
from pipeline.types import Column, ColumnType

_KINDS = {
    ColumnType.INT: (pa.int64(), np.int64),
    ColumnType.FLOAT: (pa.float32(), np.float32),
    ColumnType.STRING: (pa.large_binary(), object),
}


def _array(tables: Sequence[pa.Table], column: Column) -> np.ma.MaskedArray:
    arrow, kind = _KINDS[column.type]
    chunks = [c for table in tables for c in table.column(column.name).chunks]
    # One array of more than 2 GiB of text needs 64-bit offsets.
    values = pa.chunked_array([chunk.cast(arrow) for chunk in chunks], arrow)
    missing = values.is_null().to_numpy()
    if column.default is not None:
        default = column.default
        if isinstance(default, str):
            default = default.encode()
        values = values.fill_null(pa.scalar(default, arrow))
    return np.ma.MaskedArray(values.to_numpy().astype(kind, copy=False), missing)


def loader(tables: Sequence[pa.Table]) -> Loader:
    """Returns what gives columns of the rows of all tables, in order.

    A missing value becomes the default of the column that is asked for, which is the
    model's.
    """

    def load(columns: Sequence[Column]):
        return {column.name: _array(tables, column) for column in columns}

    return load
