"""Features of a model; part of `pipeline.types`, from where they are imported."""

from __future__ import annotations

import dataclasses
import itertools
from typing import ClassVar, Literal, Union

from pipeline.feature_settings import Combiner, DatePart, Scale, TextSplit, Tokens

Use = Literal["wide", "deep", "both"]


@dataclasses.dataclass(frozen=True)
class Numeric:
    """A number, scaled. Model input: float32 of shape [batch, 1].

    Attributes:
      clip: Lowest and highest number; others become the nearer one before scaling,
        in the statistics behind the constants as well.
    """

    KIND: ClassVar[str] = "numeric"

    name: str
    column: str
    scale: Scale = Scale.ZSCORE
    use: Use = "deep"
    clip: tuple[float, float] | None = None

    def __post_init__(self):
        if self.clip is not None and not (
            len(self.clip) == 2 and self.clip[0] < self.clip[1]
        ):
            raise ValueError("clip must be [lowest, highest], the lower number first")


@dataclasses.dataclass(frozen=True)
class Bucketized:
    """A number cut at boundaries; bucket i holds boundaries[i-1] <= x < boundaries[i].

    Attributes:
      boundaries: Rising cut points, or None when `quantiles` asks for cut points
        that divide the training split into that many parts.
    """

    KIND: ClassVar[str] = "bucketized"

    name: str
    column: str
    boundaries: tuple[float, ...] | None = None
    quantiles: int | None = None
    embedding: int | None = None
    use: Use = "wide"

    def __post_init__(self):
        if (self.boundaries is None) == (self.quantiles is None):
            raise ValueError("give either boundaries or quantiles")
        if self.boundaries is not None and (
            not self.boundaries
            or any(a >= b for a, b in itertools.pairwise(self.boundaries))
        ):
            raise ValueError("boundaries must be a rising list of numbers")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """A string or int looked up among the values of the training split.

    Ids are 0 for the most frequent value upwards; values outside the vocabulary
    are hashed into `oov_buckets` further ids.

    Attributes:
      top_k: Keep at most so many values; None keeps all.
      min_count: Keep values seen at least so often.
      embedding: Width of the learned vector in deep models; None gives one-hot.
      separator: Where given, a string holds several values with this between them.
      combiner: How the vectors of several or weighted values become one.
      weights: Column with the values' weights: a number, or of several values a
        string of numbers with the same separator.
      shared: Name of a group of features that have one vocabulary and one table.
    """

    KIND: ClassVar[str] = "vocabulary"

    name: str
    column: str
    top_k: int | None = None
    min_count: int = 1
    oov_buckets: int = 1
    embedding: int | None = None
    use: Use = "both"
    separator: str | None = None
    combiner: Combiner = Combiner.MEAN
    weights: str | None = None
    shared: str | None = None

    @property
    def tokens(self) -> Tokens | None:
        return _separated(self.separator)


@dataclasses.dataclass(frozen=True)
class Hashed:
    """A string or int hashed into buckets, for values that cannot be listed.

    Attributes:
      separator, combiner, weights, shared: As of `Vocabulary`.
    """

    KIND: ClassVar[str] = "hashed"

    name: str
    column: str
    buckets: int
    embedding: int | None = None
    use: Use = "both"
    separator: str | None = None
    combiner: Combiner = Combiner.MEAN
    weights: str | None = None
    shared: str | None = None

    @property
    def tokens(self) -> Tokens | None:
        return _separated(self.separator)


@dataclasses.dataclass(frozen=True)
class Identity:
    """An int that is an id: 0 to buckets - 1; all others share the id `buckets`.

    Preprocess counts those others in the statistics.

    Attributes:
      combiner, weights, shared: As of `Vocabulary`.
    """

    KIND: ClassVar[str] = "identity"

    name: str
    column: str
    buckets: int
    embedding: int | None = None
    use: Use = "both"
    combiner: Combiner = Combiner.MEAN
    weights: str | None = None
    shared: str | None = None


@dataclasses.dataclass(frozen=True)
class Crossed:
    """The combination of several features' values, hashed into buckets.

    Attributes:
      of: Names of features (bucketized, vocabulary, hashed, identity or date ones);
        of several values all combinations count.
      combiner: How the vectors of several combinations become one.
    """

    KIND: ClassVar[str] = "crossed"

    name: str
    of: tuple[str, ...]
    buckets: int
    embedding: int | None = None
    use: Use = "wide"
    combiner: Combiner = Combiner.MEAN


@dataclasses.dataclass(frozen=True)
class Date:
    """A part of an ISO 8601 date or time, or of seconds since 1970 (UTC).

    A year and a timestamp are numbers, scaled like Numeric; what is no date is 0
    after scaling. The other parts are ids from 0, in calendar order; what is no date
    gets the one id after them.
    """

    KIND: ClassVar[str] = "date"

    name: str
    column: str
    part: DatePart
    scale: Scale = Scale.ZSCORE
    embedding: int | None = None
    use: Use = "both"

    def __post_init__(self):
        if self.part.size is None and self.embedding is not None:
            raise ValueError(f"the {self.part.value} is a number; it has no embedding")
        if self.part.size is not None and self.scale is not Scale.ZSCORE:
            raise ValueError(
                f"the {self.part.value} is a category; only a year or timestamp has a"
                " scale"
            )


@dataclasses.dataclass(frozen=True)
class Text:
    """Free text as a bag of words or characters, or of runs of them.

    Attributes:
      lower: Whether A to Z become a to z first.
      split: Where words end; None of them is empty.
      pattern: For REGEX, what stands between words, as RE2 pattern.
      ngrams: Runs of 1 to so many words are looked up.
      buckets: Number of hash buckets; None for a vocabulary.
      top_k, min_count, oov_buckets, embedding, combiner: As of `Vocabulary`.
    """

    KIND: ClassVar[str] = "text"

    name: str
    column: str
    lower: bool = False
    split: TextSplit = TextSplit.WHITESPACE
    pattern: str | None = None
    ngrams: int = 1
    buckets: int | None = None
    top_k: int | None = None
    min_count: int = 1
    oov_buckets: int = 1
    embedding: int | None = None
    use: Use = "both"
    combiner: Combiner = Combiner.MEAN

    def __post_init__(self):
        if (self.split is TextSplit.REGEX) != (self.pattern is not None):
            raise ValueError("split: regex needs a pattern, and only that has one")
        _check_hashed_or_looked_up(self)

    @property
    def tokens(self) -> Tokens:
        if self.split is TextSplit.CHARACTERS:
            # A byte that is no UTF-8 matches nothing and stays with what follows.
            return Tokens(
                lower=self.lower,
                pattern="(?s)(.)",
                rewrite="\\1\x1f",
                ngrams=self.ngrams,
                joint="",
            )
        return Tokens(
            lower=self.lower,
            pattern=self.pattern or "[ \\t\\n\\v\\f\\r]+",
            ngrams=self.ngrams,
        )


@dataclasses.dataclass(frozen=True)
class TokenSequence:
    """Several values whose order counts, e.g. the pages of a visit.

    Models for sequences see ids in order; all others a bag of them.

    Attributes:
      separator: The text between values.
      max_length: Only so many first values are used.
      buckets: Number of hash buckets; None for a vocabulary.
      top_k, min_count, oov_buckets, embedding, combiner: As of `Vocabulary`.
    """

    KIND: ClassVar[str] = "sequence"

    name: str
    column: str
    separator: str
    max_length: int
    buckets: int | None = None
    top_k: int | None = None
    min_count: int = 1
    oov_buckets: int = 1
    embedding: int | None = None
    use: Use = "deep"
    combiner: Combiner = Combiner.MEAN

    def __post_init__(self):
        _check_hashed_or_looked_up(self)

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.separator, most=self.max_length)


@dataclasses.dataclass(frozen=True)
class Image:
    """An encoded JPEG or PNG image, resized. Model input: float32 from 0 to 1.

    Its shape is [batch, height, width, channels].

    Attributes:
      channels: 1 for grey, 3 for red, green and blue, 4 with opacity.
    """

    KIND: ClassVar[str] = "image"

    name: str
    column: str
    height: int
    width: int
    channels: int = 3
    use: Use = "deep"


Feature = Union[
    Numeric,
    Bucketized,
    Vocabulary,
    Hashed,
    Identity,
    Crossed,
    Date,
    Text,
    TokenSequence,
    Image,
]


def _separated(separator: str | None) -> Tokens | None:
    return None if separator is None else Tokens(separator)


def _check_hashed_or_looked_up(feature: Text | TokenSequence) -> None:
    if feature.buckets is not None and (
        (feature.top_k, feature.min_count, feature.oov_buckets) != (None, 1, 1)
    ):
        raise ValueError(
            "top_k, min_count and oov_buckets are for a vocabulary, and"
            " buckets for hashing"
        )
