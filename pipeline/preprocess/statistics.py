"""Statistics of a dataset's columns as mergeable accumulators.

Every worker adds its batches to accumulators of its own, and the accumulators are
merged in any order: the result is that of one pass, up to the rounding of mean and
variance (below 1e-9 of the values' size). Only the results are written to files; see
`summaries`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from pipeline.preprocess.moments import Moments
from pipeline.preprocess.summaries import (
    ColumnSummary,
    DatasetSummary,
    NumberSummary,
    ValueSummary,
)
from pipeline.preprocess.value_counts import ValueCounts
from pipeline.preprocess.value_points import ValuePoints
from pipeline.types import ColumnType

_TOP_VALUES = 20
_SHARES = np.arange(21) / 20


class ColumnStatistics:
    """Accumulates the statistics of one column; may be pickled.

    Args:
      column_type: Type of the column.
      want_values: Whether to count the values, for vocabularies and top values.
        Not possible for floats.
      point_limit: So many distinct numbers give exact quantiles.
      value_limit: So many distinct values are counted exactly.
    """

    def __init__(
        self,
        column_type: ColumnType,
        want_values: bool = False,
        point_limit: int = 65_536,
        value_limit: int = 1_000_000,
    ):
        self.type = column_type
        self.count = 0
        self.missing = 0
        self.non_finite = 0
        self.zeros = 0
        self.moments = Moments()
        self.log_moments = Moments()
        self.points = ValuePoints(point_limit)
        self.values = ValueCounts(column_type, value_limit) if want_values else None

    def add(self, array: pa.Array) -> None:
        """Adds an int64, float32 or binary array; null is a missing value."""
        self.count += len(array)
        self.missing += array.null_count
        if self.values is not None:
            self.values.add(array)
        if self.type is not ColumnType.STRING:
            numbers = array.drop_null().to_numpy(zero_copy_only=False)
            self._add_numbers(numbers.astype(np.float64))

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Adds what another one of the same settings has gathered; returns self."""
        if other.type is not self.type or (other.values is None) is not (
            self.values is None
        ):
            raise ValueError("statistics of different kinds of columns")
        self.count += other.count
        self.missing += other.missing
        self.non_finite += other.non_finite
        self.zeros += other.zeros
        self.moments.merge(other.moments)
        self.log_moments.merge(other.log_moments)
        self.points.merge(other.points)
        if self.values is not None:
            self.values.merge(other.values)
        return self

    @property
    def present(self) -> int:
        """Rows with a value that can be used: neither missing nor non-finite."""
        return self.count - self.missing - self.non_finite

    def summary(self) -> ColumnSummary:
        """The results so far."""
        values = self.values and ValueSummary(
            top=tuple(self.values.most_frequent(_TOP_VALUES)),
            truncated=self.values.truncated,
            undercount=self.values.undercount,
        )
        if self.values is not None:
            distinct = self.values.distinct
        else:
            is_text = self.type is ColumnType.STRING
            distinct = None if is_text else self.points.distinct
        return ColumnSummary(
            type=self.type,
            count=self.count,
            missing=self.missing,
            non_finite=self.non_finite,
            distinct=distinct,
            numbers=self._number_summary() if self.moments.count else None,
            values=values,
        )

    def _add_numbers(self, numbers: np.ndarray) -> None:
        finite = np.isfinite(numbers)
        if not finite.all():
            numbers = numbers[finite]
            self.non_finite += len(finite) - len(numbers)
        self.zeros += len(numbers) - int(np.count_nonzero(numbers))
        self.moments.add(numbers)
        self.log_moments.add(np.copysign(np.log1p(np.abs(numbers)), numbers))
        self.points.add(numbers)

    def _number_summary(self) -> NumberSummary:
        quantiles = tuple(self.points.quantiles(_SHARES).tolist())
        return NumberSummary(
            mean=self.moments.mean,
            variance=self.moments.variance,
            log_mean=self.log_moments.mean,
            log_variance=self.log_moments.variance,
            min=quantiles[0],
            max=quantiles[-1],
            zeros=self.zeros,
            quantiles=quantiles,
            rank_error=self.points.rank_error,
        )


class DatasetStatistics(Mapping[str, Mapping[str, ColumnStatistics]]):
    """The statistics of all columns by split; may be pickled.

    Args:
      columns: Type of each column to look at.
      want_values: Columns whose values are counted.
      **limits: Passed to ColumnStatistics.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnType],
        want_values: Collection[str] = (),
        **limits: int,
    ):
        self._columns = dict(columns)
        self._want_values = frozenset(want_values)
        self._limits = limits
        self._splits: dict[str, dict[str, ColumnStatistics]] = {}

    def add(self, split: str, batch: pa.RecordBatch) -> None:
        """Adds rows of a split; raises KeyError where a column is not in them."""
        for name, column in self._split(split).items():
            column.add(batch.column(name))

    def merge(self, other: DatasetStatistics) -> DatasetStatistics:
        """Adds what another one of the same columns has gathered; returns self."""
        for split, columns in other.items():
            mine = self._split(split)
            if mine.keys() != columns.keys():
                raise ValueError("statistics of different columns")
            for name, column in columns.items():
                mine[name].merge(column)
        return self

    def summary(self) -> DatasetSummary:
        """The results so far."""
        return DatasetSummary(
            {
                split: {name: c.summary() for name, c in columns.items()}
                for split, columns in sorted(self.items())
            }
        )

    def __getitem__(self, split: str) -> Mapping[str, ColumnStatistics]:
        return self._splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)

    def _split(self, split: str) -> dict[str, ColumnStatistics]:
        if split not in self._splits:
            self._splits[split] = {
                name: ColumnStatistics(kind, name in self._want_values, **self._limits)
                for name, kind in self._columns.items()
            }
        return self._splits[split]
