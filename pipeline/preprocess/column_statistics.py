"""Statistics of one column as a mergeable accumulator; see `statistics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import dates
from pipeline.preprocess.moments import Moments
from pipeline.preprocess.summaries import (
    ColumnSummary,
    NumberSummary,
    ValueSummary,
)
from pipeline.preprocess.value_counts import ValueCounts
from pipeline.preprocess.value_points import ValuePoints
from pipeline.types import ColumnType

_TOP_VALUES = 20
_PENDING = 65_536
"""Numbers gathered before they are sorted in; costs 0.5 MB a column."""
_SHARES = np.arange(21) / 20
_COUNTERS = ("count", "missing", "non_finite", "zeros", "outside", "text_bytes")


class ColumnStatistics:
    """Accumulates the statistics of one column; may be pickled.

    Args:
      column_type: Type of the column.
      want_values: Whether to count the values, for vocabularies and top values.
        Not possible for floats.
      id_buckets: For an int column of ids, how many there are: others are counted.
      are_dates: Whether it is a column of dates; what is none is counted.
      point_limit: So many distinct numbers give exact quantiles.
      value_limit: So many distinct values are counted exactly.
    """

    def __init__(
        self,
        column_type: ColumnType,
        want_values: bool = False,
        id_buckets: int | None = None,
        are_dates: bool = False,
        point_limit: int = 65_536,
        value_limit: int = 1_000_000,
    ):
        self.type = column_type
        self.id_buckets = id_buckets
        self.are_dates = are_dates
        self.count = 0
        self.missing = 0
        self.non_finite = 0
        self.zeros = 0
        self.outside = 0
        self.text_bytes = 0
        self._moments = Moments()
        self._log_moments = Moments()
        self._points = ValuePoints(point_limit)
        self._pending: list[np.ndarray] = []
        self._pending_size = 0
        self.values = ValueCounts(column_type, value_limit) if want_values else None

    def add(self, array: pa.Array) -> None:
        """Adds an int64, float32 or binary array; null is a missing value."""
        self.count += len(array)
        self.missing += array.null_count
        if self.values is not None:
            self.values.add(array)
        if self.are_dates:
            present = len(array) - array.null_count
            self.outside += present - len(dates.seconds(array))
        if self.type is ColumnType.STRING:
            self.text_bytes += pc.sum(pc.binary_length(array)).as_py() or 0
        else:
            if self.id_buckets is not None:
                outside = pc.or_(
                    pc.less(array, 0), pc.greater_equal(array, self.id_buckets)
                )
                self.outside += pc.sum(outside).as_py() or 0
            numbers = array.drop_null().to_numpy(zero_copy_only=False)
            self._add_numbers(numbers.astype(np.float64))

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Adds what another one of the same settings has gathered; returns self."""
        if self.settings != other.settings:
            raise ValueError("statistics of different kinds of columns")
        self.count += other.count
        self.missing += other.missing
        self.non_finite += other.non_finite
        self.zeros += other.zeros
        self.outside += other.outside
        self.text_bytes += other.text_bytes
        self.moments.merge(other.moments)
        self.log_moments.merge(other.log_moments)
        self.points.merge(other.points)
        if self.values is not None:
            self.values.merge(other.values)
        return self

    @property
    def settings(self) -> tuple[ColumnType, bool, int | None, bool]:
        """Type, whether values are counted, number of ids, whether they are dates."""
        return self.type, self.values is not None, self.id_buckets, self.are_dates

    @property
    def moments(self) -> Moments:
        """Of the finite numbers x."""
        self._flush()
        return self._moments

    @property
    def log_moments(self) -> Moments:
        """Of sign(x) * log(1 + |x|)."""
        self._flush()
        return self._log_moments

    @property
    def points(self) -> ValuePoints:
        """The finite numbers, counted."""
        self._flush()
        return self._points

    def state(self) -> dict[str, Any]:
        """All that is held, as plain values and arrays; see `accumulators`."""
        self._flush()
        lows, highs, counts = self._points.cells
        return {
            **{name: getattr(self, name) for name in _COUNTERS},
            "total": self._moments.total,
            "squares": self._moments.squares,
            "log_total": self._log_moments.total,
            "log_squares": self._log_moments.squares,
            "level": self._points.level,
            "lows": lows,
            "highs": highs,
            "cell_counts": counts,
            "values": self.values and self.values.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes the place of what is held; the settings must be those of the state."""
        for name in _COUNTERS:
            setattr(self, name, state[name])
        numbers = int(state["cell_counts"].sum())
        self._moments = Moments(numbers, state["total"], state["squares"])
        self._log_moments = Moments(numbers, state["log_total"], state["log_squares"])
        self._points = ValuePoints.from_cells(
            self._points.limit,
            state["level"],
            state["lows"],
            state["highs"],
            state["cell_counts"],
        )
        if self.values is not None:
            self.values = ValueCounts.from_state(
                self.type, self.values.limit, state["values"]
            )

    def __getstate__(self) -> dict[str, Any]:
        self._flush()
        return self.__dict__

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
            outside=self.outside,
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
        if len(numbers):
            self._pending.append(numbers)
            self._pending_size += len(numbers)
        if self._pending_size >= _PENDING:
            self._flush()

    def _flush(self) -> None:
        if not self._pending_size:
            return
        numbers, counts = np.unique(np.concatenate(self._pending), return_counts=True)
        self._pending, self._pending_size = [], 0
        self._moments.add(numbers, counts)
        logs = np.copysign(np.log1p(np.abs(numbers)), numbers)
        self._log_moments.add(logs, counts)
        self._points.add(numbers, counts)

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
