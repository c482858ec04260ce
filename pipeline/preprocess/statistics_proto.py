"""Statistics in TensorFlow Metadata's form, which TFDV and Facets open.

The numbers are those which TensorFlow Data Validation's `stats` module documents for
`DatasetFeatureStatisticsList`: standard deviations divide by the count, the standard
histogram has ten cuts of equal width, the quantiles histogram ten of equal counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline.preprocess import byte_text
from pipeline.preprocess.statistics import ColumnStatistics, DatasetStatistics
from pipeline.types import ColumnType

ALL_ROWS = "all"
OUTSIDE = "ids_out_of_range"
NO_DATE = "no_dates"
_BUCKETS = 10
_TOP_VALUES = 20
_RANKS = 1000
_TYPES = {
    ColumnType.INT: statistics_pb2.FeatureNameStatistics.INT,
    ColumnType.FLOAT: statistics_pb2.FeatureNameStatistics.FLOAT,
    ColumnType.STRING: statistics_pb2.FeatureNameStatistics.STRING,
}


def to_bytes(statistics: DatasetStatistics) -> bytes:
    """Returns a DatasetFeatureStatisticsList: each split, and "all" rows together."""
    result = statistics_pb2.DatasetFeatureStatisticsList()
    for split in sorted(statistics):
        _add_dataset(result, split, statistics[split])
    _add_dataset(result, ALL_ROWS, statistics.all_rows())
    return result.SerializeToString(deterministic=True)


def _add_dataset(
    result: statistics_pb2.DatasetFeatureStatisticsList,
    name: str,
    columns: Mapping[str, ColumnStatistics],
) -> None:
    rows = max((column.count for column in columns.values()), default=0)
    dataset = result.datasets.add(name=name, num_examples=rows)
    for column_name, column in columns.items():
        feature = dataset.features.add(type=_TYPES[column.type])
        # A path rather than a name, since a column's name may hold dots.
        feature.path.step.append(column_name)
        if column.type is ColumnType.STRING:
            _set_text(feature.string_stats, column)
        else:
            _set_numbers(feature.num_stats, column)
        if column.id_buckets is not None or column.are_dates:
            name = OUTSIDE if column.id_buckets is not None else NO_DATE
            feature.custom_stats.add(name=name, num=column.outside)


def _set_common(
    common: statistics_pb2.CommonStatistics, column: ColumnStatistics
) -> None:
    """A column has one value in each row that has it."""
    present = column.count - column.missing
    common.num_non_missing = present
    common.num_missing = column.missing
    common.tot_num_values = present
    if present:
        common.min_num_values = common.max_num_values = 1
        common.avg_num_values = 1.0
        histogram = common.num_values_histogram
        histogram.type = statistics_pb2.Histogram.QUANTILES
        for _ in range(_BUCKETS):
            histogram.buckets.add(
                low_value=1, high_value=1, sample_count=present / _BUCKETS
            )


def _set_numbers(
    numbers: statistics_pb2.NumericStatistics, column: ColumnStatistics
) -> None:
    _set_common(numbers.common_stats, column)
    points = column.points
    if not points.total:
        return
    cuts = points.quantiles(np.arange(_BUCKETS + 1) / _BUCKETS)
    numbers.mean = column.moments.mean
    numbers.std_dev = column.moments.variance**0.5
    numbers.num_zeros = column.zeros
    numbers.min, numbers.max = float(cuts[0]), float(cuts[-1])
    numbers.median = float(points.quantiles(np.array([0.5]))[0])
    standard = numbers.histograms.add(
        type=statistics_pb2.Histogram.STANDARD, num_nan=column.non_finite
    )
    edges, counts = equal_width_histogram(column, _BUCKETS)
    _set_buckets(standard, edges, counts)
    quantiles = numbers.histograms.add(
        type=statistics_pb2.Histogram.QUANTILES, num_nan=column.non_finite
    )
    _set_buckets(quantiles, cuts, np.full(_BUCKETS, points.total / _BUCKETS))


def equal_width_histogram(
    column: ColumnStatistics, buckets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns edges and counts; each bucket has its low edge, the last one both.

    Raises:
      ValueError: The column has no finite number.
    """
    low, high = column.points.quantiles(np.array([0.0, 1.0])).tolist()
    if low == high:
        return np.array([low, high]), np.array([float(column.points.total)])
    # Interpolated, since high - low may be infinite.
    shares = np.arange(buckets + 1) / buckets
    edges = low * (1 - shares) + high * shares
    below = column.points.counts_below(edges[1:-1])
    total = float(column.points.total)
    return edges, np.diff(np.concatenate([[0.0], below, [total]]))


def _set_buckets(
    histogram: statistics_pb2.Histogram, edges: np.ndarray, counts: np.ndarray
) -> None:
    pairs = itertools.pairwise(edges.tolist())
    for (low, high), count in zip(pairs, counts.tolist(), strict=True):
        histogram.buckets.add(low_value=low, high_value=high, sample_count=count)


def _set_text(text: statistics_pb2.StringStatistics, column: ColumnStatistics) -> None:
    """Values that are no UTF-8 stand as `byte_text` writes them; length in bytes."""
    _set_common(text.common_stats, column)
    present = column.count - column.missing
    if present:
        text.avg_length = column.text_bytes / present
    if column.values is None:
        return
    text.unique = column.values.distinct
    frequent = column.values.most_frequent(_RANKS)
    for value, count in frequent[:_TOP_VALUES]:
        text.top_values.add(value=byte_text.to_text(value), frequency=count)
    for rank, (value, count) in enumerate(frequent):
        text.rank_histogram.buckets.add(
            low_rank=rank,
            high_rank=rank,
            label=byte_text.to_text(value),
            sample_count=count,
        )
