"""Values that the model's graph makes of a column, where constants depend on them.

Their statistics are gathered beside those of the columns themselves.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import dates, tokens
from pipeline.types import (
    ColumnType,
    DatePart,
    Declaration,
    Feature,
    Numeric,
    Tokens,
    is_looked_up,
    is_number,
    tokens_of,
)


@dataclasses.dataclass(frozen=True)
class Clip:
    """Lowest and highest number."""

    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Derivation:
    """What is made of a column.

    Attributes:
      column: Its name.
      how: Tokens of a string, the year or timestamp of a date, or clipped numbers.
    """

    column: str
    how: Union[Tokens, DatePart, Clip]

    @property
    def type(self) -> ColumnType:
        is_text = isinstance(self.how, Tokens)
        return ColumnType.STRING if is_text else ColumnType.FLOAT

    def values(self, array: pa.Array) -> pa.Array:
        """Returns the values made of the column's, binary or float64."""
        if isinstance(self.how, Tokens):
            return tokens.split(array, self.how)
        if isinstance(self.how, DatePart):
            return pa.array(dates.numbers(array, self.how))
        numbers = pc.cast(array.drop_null(), pa.float64(), safe=False).to_numpy()
        return pa.array(np.clip(numbers, self.how.low, self.how.high))

    def to_text(self) -> str:
        """One line of JSON; the same derivation gives the same text."""
        if isinstance(self.how, DatePart):
            how = {"date": self.how.value}
        else:
            kind = "tokens" if isinstance(self.how, Tokens) else "clip"
            how = {kind: dataclasses.asdict(self.how)}
        return json.dumps({"column": self.column, **how}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Derivation:
        """The inverse of `to_text`; raises KeyError or ValueError for other texts."""
        value = json.loads(text)
        if "date" in value:
            return cls(value["column"], DatePart(value["date"]))
        if "clip" in value:
            return cls(value["column"], Clip(**value["clip"]))
        return cls(value["column"], Tokens(**value["tokens"]))


def needed(feature: Feature) -> Derivation | None:
    """Returns what the feature's constants depend on; None if it is the column."""
    if is_looked_up(feature) and tokens_of(feature) is not None:
        return Derivation(feature.column, tokens_of(feature))
    if isinstance(feature, Numeric):
        clip = feature.clip
        return None if clip is None else Derivation(feature.column, Clip(*clip))
    if is_number(feature):
        return Derivation(feature.column, feature.part)
    return None


def all_needed(declaration: Declaration) -> Iterator[Derivation]:
    """Yields what the features of a declaration need, each once."""
    found = map(needed, declaration.features.values())
    yield from dict.fromkeys(d for d in found if d is not None)
