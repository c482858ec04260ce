"""Results of statistics: what is written to files, shown and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pipeline.preprocess import byte_text
from pipeline.types import ColumnType


@dataclasses.dataclass(frozen=True)
class NumberSummary:
    """Results over the finite values of an int or float column.

    Attributes:
      mean: Of the values x.
      variance: Of x, divided by their number.
      log_mean: Of sign(x) * log(1 + |x|).
      log_variance: Of sign(x) * log(1 + |x|), divided by their number.
      min: Lowest x; ints beyond 2**53 are rounded to float64.
      max: Highest x.
      zeros: How many x are 0.
      quantiles: For the shares 0, 0.05, ..., 1.
      rank_error: The most by which a quantile's rank can be off, as share of rows.
    """

    mean: float
    variance: float
    log_mean: float
    log_variance: float
    min: float
    max: float
    zeros: int
    quantiles: tuple[float, ...]
    rank_error: float


@dataclasses.dataclass(frozen=True)
class ValueSummary:
    """Results over the values of a column whose values were counted.

    Attributes:
      top: The most frequent values with their counts; an int as decimal text.
      truncated: Whether there were too many values to count them all.
      undercount: The most by which a count can be too low.
    """

    top: tuple[tuple[bytes, int], ...]
    truncated: bool
    undercount: int


@dataclasses.dataclass(frozen=True)
class ColumnSummary:
    """Results for a column.

    Attributes:
      type: Type of the column.
      count: Number of rows.
      missing: Rows without a value.
      non_finite: Rows with NaN or an infinity, which no other number includes.
      outside: Rows with an id outside the buckets of an identity feature, or with
        what is no date in a column of dates.
      distinct: Number of different values; a lower bound if the values are
        truncated, None if not known.
      numbers: None for strings and where there is no finite value.
      values: None where values were not counted.
    """

    type: ColumnType
    count: int
    missing: int
    non_finite: int
    outside: int
    distinct: int | None
    numbers: NumberSummary | None
    values: ValueSummary | None


@dataclasses.dataclass(frozen=True)
class DatasetSummary:
    """Results by split and column, as they stand in a file."""

    splits: Mapping[str, Mapping[str, ColumnSummary]]

    def to_json(self) -> dict[str, Any]:
        """A value for `json`: floats are exact, bytes as `byte_text` writes them."""
        return {
            split: {name: _column_to_json(c) for name, c in columns.items()}
            for split, columns in self.splits.items()
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DatasetSummary:
        """The inverse of to_json; raises KeyError or TypeError for other values."""
        return cls(
            {
                split: {name: _column_from_json(c) for name, c in columns.items()}
                for split, columns in value.items()
            }
        )


def _column_to_json(column: ColumnSummary) -> dict[str, Any]:
    value = dataclasses.asdict(column)
    value["type"] = column.type.value
    if column.numbers is not None:
        value["numbers"]["quantiles"] = list(column.numbers.quantiles)
    if column.values is not None:
        value["values"]["top"] = [
            [byte_text.to_text(term), count] for term, count in column.values.top
        ]
    return value


def _column_from_json(value: Mapping[str, Any]) -> ColumnSummary:
    numbers, values = value["numbers"], value["values"]
    if numbers is not None:
        quantiles = tuple(numbers["quantiles"])
        numbers = NumberSummary(**{**numbers, "quantiles": quantiles})
    if values is not None:
        top = tuple((byte_text.to_bytes(text), count) for text, count in values["top"])
        values = ValueSummary(**{**values, "top": top})
    return ColumnSummary(
        **{
            **value,
            "type": ColumnType(value["type"]),
            "numbers": numbers,
            "values": values,
        }
    )
