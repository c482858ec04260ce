"""The constants of the model's graph, from statistics of the training split.

Only rows with a value count for scalings and boundaries, so that a default far away
does not move them. In vocabularies a missing value counts as the default, because
that is what the model is given for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pipeline.preprocess.statistics import ColumnStatistics
from pipeline.types import (
    Bucketized,
    Column,
    Constants,
    Declaration,
    ExitCode,
    Numeric,
    Scale,
    Scaling,
    UserError,
    Vocabulary,
)


def compute_constants(
    declaration: Declaration, train: Mapping[str, ColumnStatistics]
) -> Constants:
    """Computes scalings, boundaries and vocabularies.

    Args:
      declaration: Says what is needed.
      train: Statistics of the training split by column. Those of Vocabulary
        features' columns must have counted values.

    Raises:
      UserError: A column has no values, a vocabulary is empty, or a column has too
        many different values for one.
    """
    scalings = {}
    boundaries = {}
    vocabularies = {}
    for name, feature in declaration.features.items():
        if not isinstance(feature, (Numeric, Bucketized, Vocabulary)):
            continue
        statistics = train[feature.column]
        _require_values(name, feature.column, statistics)
        if isinstance(feature, Numeric):
            scalings[name] = _scaling(feature.scale, statistics)
        elif isinstance(feature, Bucketized):
            boundaries[name] = _boundaries(feature, statistics)
        else:
            column = declaration.columns[feature.column]
            vocabularies[name] = _vocabulary(name, feature, column, statistics)
    return Constants(scalings, boundaries, vocabularies)


def _require_values(name: str, column: str, statistics: ColumnStatistics) -> None:
    if not statistics.present:
        raise UserError(
            f"feature {name}: column {column} has no value in any of the"
            f" {statistics.count} rows of the training split; check its name and its"
            " missing-value markers, or remove the feature",
            ExitCode.BAD_DATA,
        )


def _scaling(scale: Scale, statistics: ColumnStatistics) -> Scaling:
    """Shift and factor; the factor is 1 for a constant column, so it scales to 0."""
    if scale is Scale.NONE:
        return Scaling(0.0, 1.0)
    low, high = statistics.points.quantiles(np.array([0.0, 1.0])).tolist()
    if scale is Scale.MINMAX:
        shift, spread = low, high - low
    else:
        is_log = scale is Scale.LOG
        moments = statistics.log_moments if is_log else statistics.moments
        shift, spread = moments.mean, math.sqrt(moments.variance)
    if low == high:
        # The mean of equal values may differ from them by rounding, and the model
        # would see that difference.
        shift = math.copysign(math.log1p(abs(low)), low) if scale is Scale.LOG else low
        return Scaling(shift, 1.0)
    # The graph computes in float32, where the factor must not be infinite.
    if spread <= 1 / float(np.finfo(np.float32).max):
        return Scaling(shift, 1.0)
    return Scaling(shift, 1 / spread)


def _boundaries(feature: Bucketized, statistics: ColumnStatistics) -> tuple[float, ...]:
    """Given boundaries, or cut points that leave no bucket empty in training.

    A constant column gets its value as the only boundary: then one bucket is for
    what is below it, which serving may bring, and one for all of training.
    """
    if feature.boundaries is not None:
        return feature.boundaries
    cuts = statistics.points.cuts(feature.quantiles)
    # The graph compares float32, where cuts of large ints may fall together.
    return tuple(np.unique(cuts.astype(np.float32)).tolist())


def _vocabulary(
    name: str, feature: Vocabulary, column: Column, statistics: ColumnStatistics
) -> tuple[bytes, ...]:
    """Values by falling count, then by bytes."""
    if statistics.values is None:
        raise ValueError(f"the values of column {column.name} were not counted")
    counted = statistics.values.most_frequent()
    if statistics.missing and column.default is not None:
        counts = dict(counted)
        default = str(column.default).encode()
        counts[default] = counts.get(default, 0) + statistics.missing
        counted = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [item for item in counted if item[1] >= feature.min_count][: feature.top_k]
    if not kept:
        raise UserError(
            f"feature {name}: the vocabulary is empty, since no value of column"
            f" {column.name} occurs {feature.min_count} times in the training split;"
            " lower min_count",
            ExitCode.BAD_DATA,
        )
    lowest_count, undercount = kept[-1][1], statistics.values.undercount
    if lowest_count <= undercount:
        raise UserError(
            f"feature {name}: column {column.name} has more than"
            f" {statistics.values.limit} different values, too many to count those"
            f" that occur {undercount} times or less; set min_count above"
            f" {undercount}, lower top_k, or make it a hashed feature",
            ExitCode.BAD_DATA,
        )
    return tuple(value for value, _ in kept)
