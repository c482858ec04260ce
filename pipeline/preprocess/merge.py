"""Statistics of several datasets together, without reading their rows again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pipeline.dataset import ACCUMULATORS_FILE
from pipeline.preprocess import accumulators
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import UserError


def merge_statistics(directories: Sequence[str]) -> DatasetStatistics:
    """Returns the statistics that one pass over all the datasets' rows would give.

    Args:
      directories: At least one dataset, with the same columns.

    Raises:
      UserError: A dataset has no accumulators, or its columns are treated otherwise
        than the first one's.
    """
    merged: DatasetStatistics | None = None
    for directory in directories:
        path = os.path.join(directory, ACCUMULATORS_FILE)
        statistics = accumulators.read(path)
        if merged is None:
            merged = statistics
            continue
        difference = _difference(merged, statistics)
        if difference:
            raise UserError(
                f"{directory} cannot be merged with {directories[0]}: {difference};"
                " preprocess both with the same feature declaration"
            )
        merged.merge(statistics)
    if merged is None:
        raise ValueError("no datasets to merge")
    return merged


def merge_days(days: Mapping[str, Sequence[str]]) -> DatasetStatistics:
    """Returns the statistics of days, each of which is all of one split.

    Args:
      days: Split to the directories of its days; a day by itself is all train.

    Raises:
      UserError: As `merge_statistics`.
    """
    by_split = {
        split: merge_statistics(directories)
        for split, directories in days.items()
        if directories
    }
    merged: DatasetStatistics | None = None
    for split, statistics in by_split.items():
        if merged is None:
            merged = statistics.empty()
        merged.add_split(split, statistics, "train")
    if merged is None:
        raise ValueError("no days to merge")
    return merged


def _difference(one: DatasetStatistics, other: DatasetStatistics) -> str | None:
    for name in {**one.columns, **other.columns}:
        kinds = one.columns.get(name), other.columns.get(name)
        if kinds[0] is not kinds[1]:
            shown = (kind.value if kind else "absent" for kind in kinds)
            return f"column {name} is {' in one and '.join(shown)} in the other"
        if (name in one.want_values) is not (name in other.want_values):
            return f"the values of column {name} are counted in one of them only"
        if one.id_buckets.get(name) != other.id_buckets.get(name):
            return f"the identity feature of column {name} has other buckets"
        if (name in one.dates) is not (name in other.dates):
            return f"column {name} has date features in one of them only"
    for derivation in one.derivations ^ other.derivations:
        return (
            f"column {derivation.column} is clipped, or taken apart, otherwise by a"
            " feature of one of them"
        )
    if one.limits != other.limits:
        return "they were made with other limits of counted values"
    return None
