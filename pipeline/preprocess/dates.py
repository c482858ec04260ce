"""Dates and times in columns, read as `model_fns/dates.py` reads them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import number_text
from pipeline.types import FIRST_SECOND, ISO_DATE, LAST_SECOND, DatePart

_DAY = 24 * 60 * 60
_DATE_LENGTH = len("1970-01-01")
_MINUTES_LENGTH = len("1970-01-01T00:00")


def _field(texts: pa.StringArray, start: int) -> np.ndarray:
    digits = pc.utf8_slice_codeunits(texts, start, start + 2)
    return pc.cast(digits, pa.int64()).to_numpy()


def _seconds_of_texts(texts: pa.StringArray) -> np.ndarray:
    """Returns seconds since 1970 of those that are dates, int64."""
    matches = pc.match_substring_regex(texts, pattern=f"^(?:{ISO_DATE})$")
    texts = texts.filter(matches)
    lengths = pc.binary_length(texts).to_numpy()
    year = pc.cast(pc.utf8_slice_codeunits(texts, 0, 4), pa.int64()).to_numpy()
    month, day = _field(texts, 5), _field(texts, 8)
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    seconds = days.astype(np.int64) * _DAY
    has_time = lengths > _DATE_LENGTH
    timed = texts.filter(pa.array(has_time))
    seconds[has_time] += _field(timed, 11) * 3600 + _field(timed, 14) * 60
    colon = pc.equal(pc.utf8_slice_codeunits(texts, 16, 17), ":")
    has_seconds = (lengths > _MINUTES_LENGTH) & colon.to_numpy(zero_copy_only=False)
    seconds[has_seconds] += _field(texts.filter(pa.array(has_seconds)), 17)
    return seconds[(days.astype("datetime64[M]") == months) & (year >= 1)]


def seconds(array: pa.Array) -> np.ndarray:
    """Returns seconds since 1970 of the values that are dates, int64.

    Args:
      array: Binary with ISO 8601 dates or times, or int64 seconds; null is missing.
    """
    array = array.drop_null()
    if not pa.types.is_integer(array.type):
        return _seconds_of_texts(number_text.trim(array))
    found = array.to_numpy()
    return found[(found >= FIRST_SECOND) & (found <= LAST_SECOND)]


def numbers(array: pa.Array, part: DatePart) -> np.ndarray:
    """Returns the year or timestamp of the values that are dates, float64."""
    found = seconds(array)
    if part is DatePart.YEAR:
        years = found.astype("datetime64[s]").astype("datetime64[Y]")
        found = years.astype(np.int64) + 1970
    return found.astype(np.float64)
