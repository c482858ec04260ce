"""Values that a format has typed already, brought to the declared types.

The rules are those of text where they can be: a marker that is a number means the
number, and nothing is rounded into an int.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess.number_text import Failures, numbers_among
from pipeline.types import Column, ColumnType, UserError

# Up to here a float holds every whole number.
_EXACT = {pa.float32(): 2.0**24, pa.float64(): 2.0**53}


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def is_usable(kind: pa.DataType) -> bool:
    """Whether values of the type can become those of a column."""
    if pa.types.is_dictionary(kind):
        return is_usable(kind.value_type)
    return (
        _is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def check_type(path: str, name: str, kind: pa.DataType) -> None:
    """Raises UserError if values of the type cannot become those of a column."""
    if not is_usable(kind):
        raise UserError(
            f"{path}: column {name} is of type {kind}, which cannot be used; allowed"
            " are whole numbers, floats, bools and text: leave the column out of the"
            " declaration, or write the file with another type"
        )


def plain(values: pa.Array) -> pa.Array:
    """Returns text of any kind as binary without null, other values as they are."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.array([b""] * len(values), pa.binary())
    if not _is_text(values.type):
        return values
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.binary())
    return values.fill_null(b"") if values.null_count else values


def as_text(values: pa.Array) -> pa.BinaryArray:
    """Returns values as the text that stands for them; null as the empty text."""
    values = plain(values)
    if pa.types.is_binary(values.type):
        return values
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    texts = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        whole = pc.match_substring_regex(texts, r"^-?[0-9]+$")
        with_point = pc.binary_join_element_wise(texts, ".0", "")
        texts = pc.if_else(whole, with_point, texts)
    return texts.fill_null("").cast(pa.binary())


def to_numbers(
    values: pa.Array, column: Column
) -> tuple[pa.Array, pa.BooleanArray, Failures]:
    """Converts bools, whole numbers or floats to an INT or FLOAT column.

    A float is a whole number where it has no fraction and is so small that it
    cannot have been rounded. NaN is a missing value where a marker spells it.

    Returns:
      The numbers, null where there is none; which values are missing; and by row
      what is wrong with each other one.
    """
    if pa.types.is_boolean(values.type):
        return _from_bools(values, column)
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    is_float = pa.types.is_floating(values.type)
    missing = values.is_null()
    kind = ColumnType.FLOAT if is_float else ColumnType.INT
    if numbers := numbers_among(column.missing, kind):
        missing = pc.or_(missing, _is_one_of(values, numbers))
    if is_float and any(m.strip().lower() == "nan" for m in column.missing):
        missing = pc.or_(missing, pc.is_nan(values).fill_null(False))
    values = pc.if_else(missing, None, values)
    if column.type is ColumnType.INT:
        array, failures = (_floats_to_ints if is_float else _ints_to_ints)(values)
    else:
        array, failures = _to_floats(values)
    return array, missing, failures


def _is_one_of(values: pa.Array, numbers: Sequence[int | float]) -> pa.BooleanArray:
    found = pa.array(np.zeros(len(values), bool))
    for number in numbers:
        try:
            wanted = pa.scalar(number, values.type)
        except (pa.ArrowInvalid, OverflowError):
            continue
        found = pc.or_(found, pc.equal(values, wanted).fill_null(False))
    return found


def _from_bools(
    values: pa.Array, column: Column
) -> tuple[pa.Array, pa.BooleanArray, Failures]:
    if column.type is ColumnType.INT:
        return values.cast(pa.int64()), values.is_null(), {}
    nothing = pa.nulls(len(values), pa.float32())
    return nothing, values.is_null(), _fail(values.is_valid(), "is not a number")


def _fail(wrong: pa.BooleanArray, reason: str) -> Failures:
    wrong = wrong.fill_null(False).to_numpy(zero_copy_only=False)
    return dict.fromkeys(np.flatnonzero(wrong).tolist(), reason)


def _ints_to_ints(values: pa.Array) -> tuple[pa.Array, Failures]:
    if not pa.types.is_uint64(values.type):
        return values.cast(pa.int64()), {}
    wrong = pc.greater(values, pa.scalar(2**63 - 1, pa.uint64()))
    failures = _fail(wrong, "does not fit in 64 bits")
    return pc.if_else(wrong, None, values).cast(pa.int64()), failures


def _floats_to_ints(values: pa.Array) -> tuple[pa.Array, Failures]:
    broken = pc.not_equal(pc.floor(values), values)
    broken = pc.or_(broken, pc.invert(pc.is_finite(values)))
    limit = _EXACT[values.type]
    large = pc.and_(pc.greater(pc.abs(values), limit), pc.invert(broken))
    failures = {
        **_fail(broken, "is not a whole number"),
        **_fail(large, f"is a float beyond {limit:.0f}, where they are rounded"),
    }
    good = pc.if_else(pc.or_(broken, large), None, values)
    return good.cast(pa.int64()), failures


def _to_floats(values: pa.Array) -> tuple[pa.Array, Failures]:
    array = values.cast(pa.float32(), safe=False)
    infinite = pc.invert(pc.is_finite(array))
    if not pc.any(infinite).as_py():
        return array, {}
    finite = values.cast(pa.float64(), safe=False)
    too_large = pc.and_(infinite, pc.is_finite(finite))
    failures = {
        **_fail(infinite, "is not a finite number"),
        **_fail(too_large, "is too large for a 32-bit float"),
    }
    return pc.if_else(infinite, None, array), failures
