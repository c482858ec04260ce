"""Divisions of rows; part of `pipeline.types`, from where they are imported."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import ClassVar, Union


@dataclasses.dataclass(frozen=True)
class Split:
    """How rows are divided: by a hash of their key, the same for all time.

    Attributes:
      fractions: Split name to share of the rows; the shares add up to 1.
      key: Columns whose values are hashed; empty means all declared columns, so
        that exact duplicates of a row land in the same split.
      salt: Text mixed into the hash; change it for another division.
    """

    BY: ClassVar[str] = "hash"

    fractions: Mapping[str, float]
    key: tuple[str, ...] = ()
    salt: str = ""

    def __post_init__(self):
        for name, share in self.fractions.items():
            if not name.isidentifier():
                raise ValueError(f"split name {name!r} is not a plain word")
            if not 0 < share <= 1:
                raise ValueError(f"fraction of {name} is {share}, not in (0, 1]")
        total = sum(self.fractions.values())
        if abs(total - 1) > 1e-6:
            raise ValueError(f"fractions add up to {total:g} instead of 1")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.fractions)


@dataclasses.dataclass(frozen=True)
class TimeSplit:
    """Rows divided by time: each split begins at its boundary, train before all.

    Attributes:
      column: A string column with ISO 8601 dates or times, or a number column.
      boundaries: Split name to its first time, rising: ISO text or a number.
    """

    BY: ClassVar[str] = "time"

    column: str
    boundaries: Mapping[str, str | int | float]

    def __post_init__(self):
        cuts = list(self.boundaries.values())
        if any(a >= b for a, b in itertools.pairwise(cuts)):
            raise ValueError("boundaries must rise from split to split")

    @property
    def names(self) -> tuple[str, ...]:
        return ("train", *self.boundaries)


@dataclasses.dataclass(frozen=True)
class ColumnSplit:
    """Rows divided by the values of a column that says to which split they belong.

    Attributes:
      column: A string or int column.
      values: Split name to the values of its rows, ints as decimal text.
    """

    BY: ClassVar[str] = "column"

    column: str
    values: Mapping[str, tuple[str, ...]]

    def __post_init__(self):
        listed = [value for values in self.values.values() for value in values]
        for value in listed:
            if listed.count(value) > 1:
                raise ValueError(f"value {value!r} stands twice")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values)


@dataclasses.dataclass(frozen=True)
class WindowSplit:
    """Rows divided by the day whose files they stand in, as `retrain` does it.

    A day by itself is all train; which split it is of shows only in a window of days.
    So it has no constants of its own either.
    """

    BY: ClassVar[str] = "window"

    @property
    def names(self) -> tuple[str, ...]:
        return ("train", "eval", "test")


AnySplit = Union[Split, TimeSplit, ColumnSplit, WindowSplit]
