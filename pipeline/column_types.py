"""Columns of the data; part of `pipeline.types`, from where they are imported."""

from __future__ import annotations

import dataclasses
import enum
import math
import struct
from typing import Union


class ColumnType(enum.Enum):
    """Type of a raw column: int is int64, float is float32, string is bytes."""

    INT = "int"
    FLOAT = "float"
    STRING = "string"


Default = Union[int, float, str]


class OutOfRange(enum.Enum):
    """What happens to a value outside the column's allowed values."""

    REJECT = "reject"
    """Its row is not used; a serving request with it fails."""
    CLIP = "clip"
    """A number becomes the nearest allowed one."""
    MISSING = "missing"
    """It counts as no value and becomes the default."""


def _fits_float32(value: int | float) -> bool:
    """Whether it is a finite number, and still one when rounded to 32 bits."""
    try:
        struct.pack("<f", value)
        return math.isfinite(value)
    except OverflowError:
        return False


@dataclasses.dataclass(frozen=True)
class Column:
    """A raw column of the data.

    Attributes:
      name: Its name in the files and in the tf.Examples.
      type: Its type.
      missing: Markers that mean "no value", compared after trimming blanks. The
        empty field is always one of them.
      default: What training, evaluation and serving use for a missing value.
        None makes the column required: rows without a value are rejected. The
        default is always an allowed value.
      min: Lowest allowed number.
      max: Highest allowed number.
      values: Allowed texts; None allows all.
      out_of_range: What happens to other values.
      min_fraction: Share of rows that should have a value; `check` reports less.
      drift: Distance from an earlier dataset above which `check` reports the
        column; None means the flag's.
    """

    name: str
    type: ColumnType
    missing: tuple[str, ...] = ("",)
    default: Default | None = None
    min: int | float | None = None
    max: int | float | None = None
    values: tuple[str, ...] | None = None
    out_of_range: OutOfRange = OutOfRange.REJECT
    min_fraction: float | None = None
    drift: float | None = None

    def __post_init__(self):
        self._check_default()
        is_text = self.type is ColumnType.STRING
        if is_text and (self.min, self.max) != (None, None):
            raise ValueError("min and max are for numbers; a string has values")
        if not is_text and self.values is not None:
            raise ValueError("values are for strings; a number has min and max")
        if self.values is not None and not self.values:
            raise ValueError("values allows nothing")
        for bound in (self.min, self.max):
            self._check_bound(bound)
        if None not in (self.min, self.max) and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        if self.out_of_range is OutOfRange.CLIP and is_text:
            raise ValueError("only numbers can be clipped")
        if self.out_of_range is OutOfRange.MISSING and self.default is None:
            raise ValueError("out_of_range: missing needs a default")
        for name in ("min_fraction", "drift"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{name} is {share}, not in [0, 1]")

    def _check_bound(self, bound: int | float | None):
        if bound is None:
            return
        if self.type is ColumnType.INT and not -(2**63) <= bound < 2**63:
            raise ValueError(f"bound {bound} does not fit in 64 bits")
        if self.type is ColumnType.FLOAT and not _fits_float32(bound):
            raise ValueError(f"bound {bound} does not fit in a 32-bit float")

    def _check_default(self):
        if self.default is None:
            return
        allowed = {
            ColumnType.INT: (int,),
            ColumnType.FLOAT: (int, float),
            ColumnType.STRING: (str,),
        }[self.type]
        bad_type = isinstance(self.default, bool) or not isinstance(
            self.default, allowed
        )
        if bad_type or (
            self.type is ColumnType.FLOAT and not _fits_float32(self.default)
        ):
            raise ValueError(
                f"default {self.default!r} is not a valid {self.type.value}"
            )
        if self.type is ColumnType.INT and not -(2**63) <= self.default < 2**63:
            raise ValueError(f"default {self.default} does not fit in 64 bits")

    @property
    def required(self) -> bool:
        return self.default is None

    @property
    def restricted(self) -> bool:
        """Whether some values of the type are not allowed."""
        return (self.min, self.max, self.values) != (None, None, None)
