"""The constants of the model's graph, from statistics of the training split.

Only rows with a value count for scalings and boundaries, so that a default far away
does not move them. In vocabularies a missing value counts as the default, because
that is what the model is given for it.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeline.preprocess import tokens
from pipeline.preprocess.column_statistics import ColumnStatistics
from pipeline.preprocess.derived import Derivation, needed
from pipeline.types import (
    Bucketized,
    Constants,
    DatePart,
    Declaration,
    ExitCode,
    Feature,
    Scale,
    Scaling,
    UserError,
    groups,
    is_looked_up,
    is_number,
    tokens_of,
)


def compute_constants(
    declaration: Declaration,
    train: Mapping[str, ColumnStatistics],
    derived: Mapping[Derivation, ColumnStatistics] | None = None,
) -> Constants:
    """Computes scalings, boundaries and vocabularies.

    Args:
      declaration: Says what is needed.
      train: Statistics of the training split by column. Those of Vocabulary
        features' columns must have counted values.
      derived: Statistics of what features make of columns (`derived.needed`).

    Raises:
      UserError: A column has no values, a vocabulary is empty, or a column has too
        many different values for one.
    """
    scalings = {}
    boundaries = {}
    vocabularies: dict[str, tuple[bytes, ...]] = {}
    sharing = groups(declaration.features)
    for name, feature in declaration.features.items():
        if is_looked_up(feature):
            members = sharing.get(getattr(feature, "shared", None), (feature,))
            if members[0].name in vocabularies:
                vocabularies[name] = vocabularies[members[0].name]
                continue
            counted = [_counted(f, declaration, train, derived) for f in members]
            vocabularies[name] = _vocabulary(feature, members, counted)
        elif isinstance(feature, Bucketized):
            statistics = _of_column(feature, train)
            boundaries[name] = _boundaries(feature, statistics)
        elif is_number(feature):
            statistics = _of_feature(feature, train, derived)
            scalings[name] = _scaling(feature.scale, statistics)
    return Constants(scalings, boundaries, vocabularies)


def _of_column(
    feature: Feature, train: Mapping[str, ColumnStatistics]
) -> ColumnStatistics:
    statistics = train[feature.column]
    if not statistics.present:
        raise UserError(
            f"feature {feature.name}: column {feature.column} has no value in any of"
            f" the {statistics.count} rows of the training split; check its name and"
            " its missing-value markers, or remove the feature",
            ExitCode.BAD_DATA,
        )
    return statistics


def _of_feature(
    feature: Feature,
    train: Mapping[str, ColumnStatistics],
    derived: Mapping[Derivation, ColumnStatistics] | None,
) -> ColumnStatistics:
    """Statistics of what the feature makes of its column."""
    statistics = _of_column(feature, train)
    derivation = needed(feature)
    if derivation is None:
        return statistics
    statistics = derived[derivation]
    if not statistics.present and isinstance(derivation.how, DatePart):
        raise UserError(
            f"feature {feature.name}: no value of column {feature.column} in the"
            f" training split is an ISO 8601 date or time (2013-11-01 or 2013-11-01T06:00:00Z), or"
            f" seconds since 1970 in an int"
            " column",
            ExitCode.BAD_DATA,
        )
    return statistics


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


@dataclasses.dataclass(frozen=True)
class _Counted:
    """Values of a feature and how often they occur, by falling count.

    Attributes:
      undercount: The most by which a count can be too low.
      limit: So many different values are counted exactly.
    """

    values: list[tuple[bytes, int]]
    undercount: int
    limit: int


def _by_falling_count(counts: Mapping[bytes, int]) -> list[tuple[bytes, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _counted(
    feature: Feature,
    declaration: Declaration,
    train: Mapping[str, ColumnStatistics],
    derived: Mapping[Derivation, ColumnStatistics] | None,
) -> _Counted:
    """A missing value counts as the default."""
    missing = _of_column(feature, train).missing
    values = _of_feature(feature, train, derived).values
    if values is None:
        raise ValueError(f"the values of column {feature.column} were not counted")
    counted = values.most_frequent()
    default = declaration.columns[feature.column].default
    if missing and default is not None:
        counts = dict(counted)
        text = str(default).encode()
        how = tokens_of(feature)
        found = [text]
        if how is not None:
            found = tokens.split(pa.array([text], pa.binary()), how).to_pylist()
        for term in found:
            counts[term] = counts.get(term, 0) + missing
        counted = _by_falling_count(counts)
    return _Counted(counted, values.undercount, values.limit)


def _vocabulary(
    feature: Feature, members: Sequence[Feature], counted: Sequence[_Counted]
) -> tuple[bytes, ...]:
    """Values by falling count, then by bytes; of all features that share a table."""
    values = counted[0].values
    if len(counted) > 1:
        counts: collections.Counter[bytes] = collections.Counter()
        for each in counted:
            counts.update(dict(each.values))
        values = _by_falling_count(counts)
    undercount = sum(each.undercount for each in counted)
    kept = [item for item in values if item[1] >= feature.min_count][: feature.top_k]
    columns = ", ".join(dict.fromkeys(f.column for f in members))
    if not kept:
        what = "value" if tokens_of(feature) is None else "token"
        raise UserError(
            f"feature {feature.name}: the vocabulary is empty, since no {what} of"
            f" column {columns} occurs {feature.min_count} times in the training"
            " split; lower min_count",
            ExitCode.BAD_DATA,
        )
    if kept[-1][1] <= undercount:
        raise UserError(
            f"feature {feature.name}: column {columns} has more than"
            f" {counted[0].limit} different values, too many to count those"
            f" that occur {undercount} times or less; set min_count above"
            f" {undercount}, lower top_k, or make it a hashed feature",
            ExitCode.BAD_DATA,
        )
    return tuple(value for value, _ in kept)
