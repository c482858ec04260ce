"""A column's allowed values: what lies outside is rejected, clipped or missing.

`input_fns.parsing.apply_range_rule` does the same in the model's graph.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess.number_text import Failures
from pipeline.types import Column, ColumnType, OutOfRange

_MAX_SHOWN = 10


def apply(array: pa.Array, column: Column) -> tuple[pa.Array, Failures]:
    """Applies a column's rule to its typed values; null is a missing value.

    Numbers are compared in the column's type, so a float32 that was read from the
    same text as a bound is allowed. The column's default always is.

    Returns:
      The values, and what is wrong with those that are rejected, by row.
    """
    if not column.restricted:
        return array, {}
    outside = _outside(array, column)
    if column.out_of_range is OutOfRange.REJECT:
        rows = np.flatnonzero(outside.to_numpy(zero_copy_only=False)).tolist()
        return array, dict.fromkeys(rows, f"is not allowed; allowed: {allowed(column)}")
    if column.out_of_range is OutOfRange.MISSING:
        return pc.if_else(outside, None, array), {}
    clipped = array
    if column.min is not None:
        clipped = pc.max_element_wise(clipped, _scalar(column.min, array))
    if column.max is not None:
        clipped = pc.min_element_wise(clipped, _scalar(column.max, array))
    return pc.if_else(outside, clipped, array), {}


def allowed(column: Column) -> str:
    """Says which values a restricted column allows."""
    if column.values is not None:
        shown = ", ".join(map(repr, column.values[:_MAX_SHOWN]))
        return shown + (", ..." if len(column.values) > _MAX_SHOWN else "")
    if column.max is None:
        return f"at least {column.min}"
    if column.min is None:
        return f"at most {column.max}"
    return f"{column.min} to {column.max}"


def _outside(array: pa.Array, column: Column) -> pa.BooleanArray:
    """Where a value is not allowed; false where there is none."""
    if column.type is ColumnType.STRING:
        listed = [value.encode() for value in column.values]
        if column.default is not None:
            listed.append(column.default.encode())
        inside = pc.is_in(array, value_set=pa.array(listed, pa.binary()))
        return pc.and_(pc.invert(inside), array.is_valid())
    outside = pa.array(np.zeros(len(array), bool))
    if column.min is not None:
        outside = pc.or_(outside, pc.less(array, _scalar(column.min, array)))
    if column.max is not None:
        outside = pc.or_(outside, pc.greater(array, _scalar(column.max, array)))
    if column.default is not None:
        outside = pc.and_(outside, pc.not_equal(array, _scalar(column.default, array)))
    return outside.fill_null(False)


def _scalar(number: int | float, array: pa.Array) -> pa.Scalar:
    if pa.types.is_float32(array.type):
        return pa.scalar(np.float32(number))
    return pa.scalar(number, array.type)
