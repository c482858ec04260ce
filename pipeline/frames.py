"""pandas DataFrames and dicts of NumPy arrays as a source of rows.

    rows = frames.table_of(frame, declaration)
    input_fn = order.train_input_fn(rows, declaration, TrainInput(512, 50_000, seed=1))

Values follow the rules of the declaration's columns, as those of files do: None, NaN,
NA and the missing markers of a column are missing. pandas itself is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from input_fns import arrays, labels
from pipeline import table_arrays
from pipeline.preprocess import typed, typed_values
from pipeline.preprocess.sources.base import RawBatch, row_as_json
from pipeline.types import Column, Declaration, ExitCode, UserError

_NAME = "frame"


def _arrow(name: str, values: Any) -> pa.Array:
    """Returns one column as Arrow; what pandas takes for missing is null."""
    mask = None
    if isinstance(values, np.ma.MaskedArray):
        values, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
    if getattr(values, "ndim", 1) != 1:
        raise UserError(
            f"{_NAME}: column {name} has shape {tuple(values.shape)}; a column has one"
            " value a row"
        )
    if mask is None and getattr(values, "dtype", None) == np.dtype(object):
        # Arrow knows Python's NaN, but not NumPy's, among objects.
        mask = np.array([isinstance(v, np.floating) and np.isnan(v) for v in values])
    try:
        array = pa.array(values, mask=mask, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise UserError(
            f"{_NAME}: the values of column {name} cannot be used: {error}; allowed are"
            " whole numbers, floats, bools and text, of one kind in a column"
        ) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    typed_values.check_type(_NAME, name, array.type)
    return array


def _columns(frame: Mapping[str, Any], columns: list[Column]) -> dict[str, pa.Array]:
    absent = [c.name for c in columns if c.name not in frame]
    if absent:
        raise UserError(
            f"{_NAME}: there is no column {', '.join(absent)}, which the declaration"
            f" names; there are {', '.join(map(str, frame.keys()))}"
        )
    found = {c.name: _arrow(c.name, frame[c.name]) for c in columns}
    sizes = {name: len(array) for name, array in found.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"{_NAME}: columns have different numbers of rows: {sizes}")
    return found


def table_of(frame: Mapping[str, Any], declaration: Declaration) -> arrays.Table:
    """Returns the rows of a frame as a source for `order.train_input_fn` and others.

    Args:
      frame: A pandas DataFrame, or a dict of column name to NumPy array or list of
        shape [rows]. Columns that nothing uses are passed over.
      declaration: Says which columns are read, and their rules.

    Raises:
      UserError: A column is absent or of a type that cannot be used, or a value breaks
        its column's rules (BAD_DATA); the message names column and row (from 0).
    """
    columns = list(labels.read_columns(declaration))
    found = _columns(frame, columns)
    table = pa.record_batch(list(found.values()), list(found))
    raw = RawBatch(
        path=_NAME,
        table=table,
        lines=np.arange(table.num_rows),
        rejects=(),
        rows_read=table.num_rows,
        texts=lambda row: row_as_json(table.slice(row, 1).to_pylist()[0]),
    )
    checked, rejects = typed.convert(raw, columns, declaration.label)
    if rejects:
        first = rejects[0]
        raise UserError(
            f"{_NAME}: {len(rejects):,} of {table.num_rows:,} rows cannot be used; the"
            f" first is row {first.line} (from 0): {first.reason}",
            ExitCode.BAD_DATA,
        )
    rows = pa.Table.from_batches([checked.table])
    return arrays.from_arrays([rows.num_rows], table_arrays.loader([rows]))
