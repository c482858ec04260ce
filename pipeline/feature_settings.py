"""Settings of features; part of `pipeline.types`, from where they are imported."""

from __future__ import annotations

import dataclasses
import enum


class Scale(enum.Enum):
    """How a numeric feature is brought to the size a network likes.

    With x the raw value and statistics over the training split: NONE x; ZSCORE
    (x - mean) / standard deviation; MINMAX (x - min) / (max - min); LOG
    sign(x) * log(1 + |x|), then its z-score.
    """

    NONE = "none"
    ZSCORE = "zscore"
    MINMAX = "minmax"
    LOG = "log"


class Combiner(enum.Enum):
    """How the vectors v of a row's values become one, with weights w (1 if none).

    SUM sum(w v); MEAN sum(w v) / sum(w); SQRTN sum(w v) / sqrt(sum(w**2)); as in
    `tf.feature_column.embedding_column`. No value gives the zero vector.
    """

    SUM = "sum"
    MEAN = "mean"
    SQRTN = "sqrtn"


class TextSplit(enum.Enum):
    """Where a text is divided into tokens."""

    WHITESPACE = "whitespace"
    CHARACTERS = "characters"
    REGEX = "regex"


@dataclasses.dataclass(frozen=True)
class Tokens:
    """How one string is taken apart, in preprocess as in the model's graph.

    Attributes:
      separator: The text between tokens, which are trimmed of ASCII blanks. None
        where `pattern` divides instead.
      lower: Whether A to Z become a to z first.
      pattern: RE2 pattern; each match is replaced by `rewrite`, and then the text is
        divided at each U+001F, so that preprocess and graph do the same.
      rewrite: Replacement with RE2's back references.
      ngrams: Runs of 1 to so many tokens are the tokens.
      joint: Stands between the tokens of a run.
      most: Further tokens of a row are left out; None keeps all.

    Empty tokens are dropped.
    """

    separator: str | None = None
    lower: bool = False
    pattern: str | None = None
    rewrite: str = "\x1f"
    ngrams: int = 1
    joint: str = " "
    most: int | None = None


ISO_DATE = (
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?Z?)?"
)
"""RE2 pattern of an ISO 8601 date or time, as features of kind `date` take them.

Seconds and their fraction may be left out. There is no offset but Z, and no leap
second. The year 0 and days that their month does not have are no dates either.
"""
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of the years 1 to 9999, in seconds since 1970: other times are no dates."""


class DatePart(enum.Enum):
    """What of a date or time is a feature; weeks begin on Monday (ISO 8601)."""

    YEAR = "year"
    TIMESTAMP = "timestamp"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    DAY_OF_YEAR = "day_of_year"
    WEEKDAY = "weekday"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"

    @property
    def size(self) -> int | None:
        """Number of ids; None for a part that is a number."""
        return _PART_SIZES.get(self)


_PART_SIZES = {
    DatePart.QUARTER: 4,
    DatePart.MONTH: 12,
    DatePart.WEEK: 53,
    DatePart.DAY: 31,
    DatePart.DAY_OF_YEAR: 366,
    DatePart.WEEKDAY: 7,
    DatePart.HOUR: 24,
    DatePart.MINUTE: 60,
    DatePart.SECOND: 60,
}
