"""Text to int64 and float32, exactly: whole columns by Arrow, doubts by Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.types import ColumnType

_INT = re.compile(rb"([+-]?)0*([0-9]+)")
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)

# What Arrow surely reads as we do; all else is looked at value by value.
_PLAIN = {
    ColumnType.INT: r"^-?[0-9]{1,18}$",
    ColumnType.FLOAT: r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$",
}
_ARROW_TYPES = {ColumnType.INT: pa.int64(), ColumnType.FLOAT: pa.float32()}

Failures = dict[int, str]
"""Row to what is wrong with its value, e.g. "is not a number"."""


def trim(values: pa.Array) -> pa.StringArray:
    """Returns binary values without the ASCII blanks around them.

    The result is typed string, as Arrow trims no other; it need not be UTF-8.
    """
    return pc.ascii_trim_whitespace(values.view(pa.string()))


def parse(texts: pa.StringArray, kind: ColumnType) -> tuple[pa.Array, Failures]:
    """Parses trimmed texts as numbers.

    An int is `[+-]?digits` and fits int64. A float is in decimal or scientific
    notation and finite in float32; what is nearer to 0 than float32 reaches is 0.

    Args:
      texts: The texts; null stays null.
      kind: INT or FLOAT.

    Returns:
      The numbers, null where the text is none, and the failures.
    """
    arrow_type = _ARROW_TYPES[kind]
    try:
        numbers = pc.cast(texts, arrow_type)
    except pa.ArrowInvalid:
        return _parse_doubtful(texts, kind)
    if not _all_finite(numbers) if kind is ColumnType.FLOAT else _may_be_hex(texts):
        return _parse_doubtful(texts, kind)
    return numbers, {}


def _all_finite(numbers: pa.Array) -> bool:
    return pc.all(pc.is_finite(numbers), skip_nulls=True).as_py() is not False


def _may_be_hex(texts: pa.StringArray) -> bool:
    """Whether an x occurs, for Arrow reads 0x1F as an int."""
    data = texts.buffers()[2]
    if data is None:
        return False
    characters = np.frombuffer(data, np.uint8)
    return bool(((characters | 0x20) == ord("x")).any())


def _parse_doubtful(
    texts: pa.StringArray, kind: ColumnType
) -> tuple[pa.Array, Failures]:
    """Parses the plain texts together and each of the others in Python."""
    arrow_type = _ARROW_TYPES[kind]
    binary = texts.view(pa.binary())
    plain = pc.match_substring_regex(binary, _PLAIN[kind]).fill_null(False)
    numbers = pc.cast(pc.if_else(plain, texts, None), arrow_type)
    if kind is ColumnType.FLOAT:
        plain = pc.and_(plain, pc.is_finite(numbers).fill_null(False))
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False).copy()
    valid = texts.is_valid().to_numpy(zero_copy_only=False).copy()
    parse_one = _parse_int if kind is ColumnType.INT else _parse_float
    failures = {}
    for row in np.flatnonzero(valid & ~plain.to_numpy(zero_copy_only=False)).tolist():
        number = parse_one(binary[row].as_py())
        if isinstance(number, str):
            failures[row] = number
            valid[row] = False
            values[row] = 0
        else:
            values[row] = number
    return pa.array(values, arrow_type, mask=~valid), failures


def _parse_int(text: bytes) -> int | str:
    match = _INT.fullmatch(text)
    if not match:
        return "is not a whole number"
    sign, digits = match.groups()
    # int() refuses thousands of digits, so their number is looked at first.
    number = int(sign + digits) if len(digits) <= 19 else 2**64
    if not -(2**63) <= number < 2**63:
        return "does not fit in 64 bits"
    return number


def _parse_float(text: bytes) -> float | str:
    if _NOT_FINITE.fullmatch(text):
        return "is not a finite number"
    if not _FLOAT.fullmatch(text):
        return "is not a number"
    # Arrow again, so that +0.1 becomes the same float32 as 0.1.
    number = pc.cast(pa.scalar(text.lstrip(b"+").decode()), pa.float32()).as_py()
    if not np.isfinite(number):
        return "is too large for a 32-bit float"
    return number


def numbers_among(texts: Sequence[str], kind: ColumnType) -> tuple[int | float, ...]:
    """Returns the values of those texts that are numbers of the kind."""
    parse_one = _parse_int if kind is ColumnType.INT else _parse_float
    values = [parse_one(text.strip().encode()) for text in texts]
    return tuple(value for value in values if not isinstance(value, str))
