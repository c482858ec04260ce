"""Statistics of a dataset's columns as mergeable accumulators.

Every worker adds its batches to accumulators of its own, and the accumulators are
merged in any order: the result is that of one pass, bit by bit. (The counts of a
column with more than `value_limit` values depend on the order within stated bounds;
see `value_counts`.) `summaries` and `statistics_proto` have the results as they are
written to files, `accumulators` the accumulators themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from pipeline.preprocess import derived
from pipeline.preprocess.column_statistics import ColumnStatistics as ColumnStatistics
from pipeline.preprocess.derived import Derivation
from pipeline.preprocess.summaries import DatasetSummary
from pipeline.types import (
    ColumnType,
    Date,
    Declaration,
    Identity,
    Image,
    Text,
    TokenSequence,
    Vocabulary,
    tokens_of,
)


def _counted(declaration: Declaration) -> set[str]:
    """Returns the columns whose values are counted.

    Not those of texts and images alone: hardly a value occurs twice, and a million of
    them would fill the memory.
    """
    features = declaration.features.values()
    contents = {f.column for f in features if isinstance(f, _CONTENTS)}
    texts = {
        c.name for c in declaration.columns.values() if c.type is ColumnType.STRING
    }
    looked_up = {
        f.column for f in features if isinstance(f, Vocabulary) and tokens_of(f) is None
    }
    return (texts - contents) | looked_up


_CONTENTS = (Text, TokenSequence, Image)


class DatasetStatistics(Mapping[str, Mapping[str, ColumnStatistics]]):
    """The statistics of all columns by split; may be pickled.

    Args:
      columns: Type of each column to look at.
      want_values: Columns whose values are counted.
      id_buckets: Number of ids of each column of ids.
      dates: Columns of dates.
      derived: What is made of columns and has statistics of its own.
      point_limit: Passed to ColumnStatistics, as value_limit.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnType],
        want_values: Collection[str] = (),
        id_buckets: Mapping[str, int] | None = None,
        dates: Collection[str] = (),
        derived: Collection[Derivation] = (),
        point_limit: int = 65_536,
        value_limit: int = 1_000_000,
    ):
        self.columns = dict(columns)
        self.want_values = frozenset(want_values)
        self.id_buckets = dict(id_buckets or {})
        self.dates = frozenset(dates)
        self.derivations = frozenset(derived)
        self.limits = {"point_limit": point_limit, "value_limit": value_limit}
        self._splits: dict[str, dict[str, ColumnStatistics]] = {}
        self._derived: dict[str, dict[Derivation, ColumnStatistics]] = {}

    @classmethod
    def of(cls, declaration: Declaration) -> DatasetStatistics:
        """Returns empty statistics of all that a declaration needs."""
        features = declaration.features.values()
        columns = declaration.columns.values()
        return cls(
            {c.name: c.type for c in columns},
            _counted(declaration),
            {f.column: f.buckets for f in features if isinstance(f, Identity)},
            {f.column for f in features if isinstance(f, Date)}
            - {f.column for f in features if isinstance(f, Identity)},
            set(derived.all_needed(declaration)),
        )

    def add(self, split: str, batch: pa.RecordBatch) -> None:
        """Adds rows of a split; raises KeyError where a column is not in them."""
        for name, column in self.split(split).items():
            column.add(batch.column(name))
        for derivation, values in self.derived(split).items():
            values.add(derivation.values(batch.column(derivation.column)))

    def empty(self) -> DatasetStatistics:
        """Returns statistics of the same columns without rows."""
        return DatasetStatistics(
            self.columns,
            self.want_values,
            self.id_buckets,
            self.dates,
            self.derivations,
            **self.limits,
        )

    def merge(self, other: DatasetStatistics) -> DatasetStatistics:
        """Adds what another one of the same columns has gathered; returns self."""
        settings = (self.columns, self.derivations)
        if (other.columns, other.derivations) != settings:
            raise ValueError("statistics of different columns")
        for split, columns in other.items():
            for name, column in self.split(split).items():
                column.merge(columns[name])
            for derivation, values in self.derived(split).items():
                values.merge(other.derived(split)[derivation])
        return self

    def add_split(self, split: str, other: DatasetStatistics, of: str) -> None:
        """Adds a split of another one of the same columns to one of this one."""
        for name, column in self.split(split).items():
            column.merge(other.split(of)[name])
        for derivation, values in self.derived(split).items():
            values.merge(other.derived(of)[derivation])

    def all_rows(self) -> Mapping[str, ColumnStatistics]:
        """Returns the statistics of all splits together."""
        merged = self.empty().split("all")
        for split in sorted(self):
            for name, column in merged.items():
                column.merge(self[split][name])
        return merged

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

    def split(self, split: str) -> dict[str, ColumnStatistics]:
        """Returns the statistics of a split, new ones where there are none yet."""
        if split not in self._splits:
            self._splits[split] = {
                name: ColumnStatistics(
                    kind,
                    name in self.want_values,
                    self.id_buckets.get(name),
                    name in self.dates,
                    **self.limits,
                )
                for name, kind in self.columns.items()
            }
        return self._splits[split]

    def derived(self, split: str) -> dict[Derivation, ColumnStatistics]:
        """Returns the statistics of what is made of a split's columns."""
        if split not in self._derived:
            self._derived[split] = {
                derivation: ColumnStatistics(
                    derivation.type,
                    derivation.type is ColumnType.STRING,
                    **self.limits,
                )
                for derivation in sorted(self.derivations, key=Derivation.to_text)
            }
        return self._derived[split]
