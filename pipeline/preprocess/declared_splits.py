"""Division of rows by time, or by a column that names the split."""

from __future__ import annotations

import bisect

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import times
from pipeline.preprocess import row_bytes
from pipeline.preprocess.number_text import Failures
from pipeline.types import ColumnSplit, TimeSplit

NO_SPLIT = -1


def assign(batch: pa.RecordBatch, split: TimeSplit | ColumnSplit) -> np.ndarray:
    """Returns the place of each row's split in `split.names`, int64, or NO_SPLIT."""
    column = batch.column(split.column)
    if isinstance(split, TimeSplit):
        return _by_time(column, split)
    return _by_value(column, split)


def failures(batch: pa.RecordBatch, split: TimeSplit | ColumnSplit) -> Failures:
    """Says by row why it belongs to no split."""
    column = batch.column(split.column)
    rows = np.flatnonzero(assign(batch, split) == NO_SPLIT).tolist()
    if isinstance(split, TimeSplit):
        wrong = f"is not {times.EXPECTED}"
    else:
        listed = "; ".join(f"{n}: {', '.join(v)}" for n, v in split.values.items())
        wrong = f"is none of the split's values ({listed})"
    reasons = {}
    for row in rows:
        value = column[row].as_py()
        if value is None:
            reasons[row] = (
                f"column {split.column} has no value, so the row is of no split"
            )
            continue
        if isinstance(value, bytes):
            value = value.decode(errors="backslashreplace")[:60]
        reasons[row] = f"column {split.column}: {value!r} {wrong}"
    return reasons


def _by_time(column: pa.Array, split: TimeSplit) -> np.ndarray:
    cuts = list(split.boundaries.values())
    if not pa.types.is_binary(column.type):
        values = row_bytes.numbers(column)
        numbers = np.searchsorted(np.array(cuts, values.dtype), values, side="right")
        return np.where(row_bytes.present(column), numbers, NO_SPLIT)
    encoded = column.dictionary_encode()
    by_term = [NO_SPLIT]
    for term in encoded.dictionary.to_pylist():
        time = times.normal(term.decode(errors="replace"))
        by_term.append(NO_SPLIT if time is None else bisect.bisect_right(cuts, time))
    # A missing value has no index; the first place is for it.
    indices = pc.add(encoded.indices.cast(pa.int64()), 1).fill_null(0)
    return np.array(by_term, np.int64)[indices.to_numpy(zero_copy_only=False)]


def _by_value(column: pa.Array, split: ColumnSplit) -> np.ndarray:
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    numbers = {
        value.encode(): number
        for number, values in enumerate(split.values.values())
        for value in values
    }
    found = pc.index_in(column, value_set=pa.array(list(numbers), pa.binary()))
    by_place = np.array([NO_SPLIT, *numbers.values()], np.int64)
    places = pc.add(found.cast(pa.int64()), 1).fill_null(0)
    return by_place[places.to_numpy(zero_copy_only=False)]
