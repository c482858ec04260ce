"""Dates and times taken apart in the graph, in the Gregorian calendar.

The arithmetic is Howard Hinnant's ("chrono-Compatible Low-Level Date Algorithms",
`days_from_civil` and `civil_from_days`): exact for all days, also before 1970.
"""

from __future__ import annotations

import math

from pipeline.compat import tf
from pipeline.types import FIRST_SECOND, ISO_DATE, LAST_SECOND, DatePart

_DAY = 24 * 60 * 60
_NOTHING = "1970-01-01"
_ERA_DAYS = 146_097  # 400 years.
_TO_EPOCH = 719_468  # Days from 0000-03-01 to 1970-01-01.


def _days_from_civil(year: tf.Tensor, month: tf.Tensor, day: tf.Tensor) -> tf.Tensor:
    """Returns days since 1970-01-01; all int64."""
    year = tf.where(month <= 2, year - 1, year)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    return era * _ERA_DAYS + day_of_era - _TO_EPOCH


def _civil_from_days(days: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns year, month from 1 and day from 1; all int64."""
    days = days + _TO_EPOCH
    era = days // _ERA_DAYS
    of_era = days - era * _ERA_DAYS
    year_of_era = (
        of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096
    ) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * from_march + 2) // 5 + 1
    month = (from_march + 2) % 12 + 1
    year = year_of_era + era * 400
    return tf.where(month <= 2, year + 1, year), month, day


def _field(text: tf.Tensor, start: int, size: int) -> tf.Tensor:
    return tf.strings.to_number(tf.strings.substr(text, start, size), tf.int64)


def _seconds_of_text(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns seconds since 1970, int64, and whether the text is a date."""
    text = tf.strings.strip(text)
    is_date = tf.strings.regex_full_match(text, ISO_DATE)
    text = tf.where(is_date, text, tf.fill(tf.shape(text), _NOTHING))
    text = tf.strings.regex_replace(text, "Z$", "")
    has_time = tf.strings.length(text) > len(_NOTHING)
    text = tf.where(has_time, text + ":00", text + "T00:00:00")
    year, month, day = (_field(text, *place) for place in ((0, 4), (5, 2), (8, 2)))
    days = _days_from_civil(year, month, day)
    # The 30th of February comes back as a day in March.
    is_date &= tf.equal(_civil_from_days(days)[2], day) & (year >= 1)
    hour, minute, second = (_field(text, start, 2) for start in (11, 14, 17))
    return days * _DAY + hour * 3600 + minute * 60 + second, is_date


def _seconds(value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    if value.dtype == tf.string:
        return _seconds_of_text(value)
    is_date = (value >= FIRST_SECOND) & (value <= LAST_SECOND)
    return tf.where(is_date, value, tf.zeros_like(value)), is_date


def _part(seconds: tf.Tensor, part: DatePart) -> tf.Tensor:
    """Returns the part's number, ids from 0; int64."""
    days = seconds // _DAY
    if part is DatePart.TIMESTAMP:
        return seconds
    if part is DatePart.HOUR:
        return seconds % _DAY // 3600
    if part is DatePart.MINUTE:
        return seconds % 3600 // 60
    if part is DatePart.SECOND:
        return seconds % 60
    if part is DatePart.WEEKDAY:
        return (days + 3) % 7  # 1970-01-01 was a Thursday.
    if part is DatePart.WEEK:
        # A week belongs to the year of its Thursday (ISO 8601).
        days = days - (days + 3) % 7 + 3
    year, month, day = _civil_from_days(days)
    if part is DatePart.YEAR:
        return year
    if part is DatePart.QUARTER:
        return (month - 1) // 3
    if part is DatePart.MONTH:
        return month - 1
    if part is DatePart.DAY:
        return day - 1
    first = _days_from_civil(year, tf.ones_like(year), tf.ones_like(year))
    if part is DatePart.WEEK:
        return (days - first) // 7
    return days - first


def part_number(value: tf.Tensor, part: DatePart) -> tf.Tensor:
    """Returns a year or timestamp, float64 [batch]; NaN for what is no date.

    Args:
      value: ISO 8601 texts, or int64 seconds since 1970; [batch].
    """
    seconds, is_date = _seconds(value)
    number = tf.cast(_part(seconds, part), tf.float64)
    return tf.where(
        is_date, number, tf.fill(tf.shape(number), tf.constant(math.nan, tf.float64))
    )


def part_ids(value: tf.Tensor, part: DatePart) -> tf.Tensor:
    """Returns ids of any other part, int64 [batch]; `part.size` for no date."""
    seconds, is_date = _seconds(value)
    ids = _part(seconds, part)
    return tf.where(
        is_date, ids, tf.fill(tf.shape(ids), tf.constant(part.size, tf.int64))
    )
