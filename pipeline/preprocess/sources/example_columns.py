"""Serialized tf.Examples to Arrow columns, a whole batch by TensorFlow at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeline.preprocess.sources import example_message
from pipeline.preprocess.sources.base import row_as_json

_ARROW_TYPES = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}
_MANY = "has {} values; only single values can be used"


@dataclasses.dataclass(frozen=True, eq=False)
class ExampleTexts:
    """Serialized Examples as JSON; one that is none as its bytes."""

    records: Sequence[bytes]

    def __call__(self, row: int) -> bytes:
        return as_json(self.records[row])


def as_json(record: bytes) -> bytes:
    """Returns all features of an Example as JSON; other bytes as they are."""
    features = example_message.parse(record)
    if features is None:
        return record
    return row_as_json(
        {
            name: [v.decode(errors="backslashreplace") for v in values]
            if kind == "bytes" and len(values) > 1
            else values[0]
            if len(values) == 1
            else values
            for name, (kind, values) in sorted(features.items())
        }
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Parsed Examples.

    Attributes:
      rows: Place of each good row among the Examples given.
      table: Their columns.
      failed: Place of each other row to the column at fault (None for all of it) and
        what is wrong.
    """

    rows: np.ndarray
    table: pa.RecordBatch
    failed: Mapping[int, tuple[str | None, str]]


class ExampleParser:
    """Parses batches of one file.

    A feature's kind is taken from the first Example that has it. Where Examples
    differ in it, each run of those that agree becomes a table of its own.
    """

    def __init__(self, columns: Sequence[str]):
        self._columns = tuple(columns)
        self._kinds: dict[str, str] = {}

    def parse(self, records: np.ndarray) -> Iterator[Columns]:
        """Parses serialized Examples, an array of bytes objects."""
        from pipeline.compat import tf

        self._learn(records)
        try:
            yield self._parse_alike(records, self._kinds, np.arange(len(records)))
        except tf.errors.InvalidArgumentError:
            yield from self._parse_runs(records)

    def _learn(self, records: np.ndarray) -> None:
        unknown = set(self._columns) - set(self._kinds)
        for record in records:
            if not unknown:
                return
            for name, (kind, _) in (example_message.parse(record) or {}).items():
                if name in unknown:
                    self._kinds[name] = kind
                    unknown.remove(name)

    def _parse_runs(self, records: np.ndarray) -> Iterator[Columns]:
        kinds: dict[str, str] = {}
        run: list[int] = []
        broken: dict[int, tuple[str | None, str]] = {}

        def finish() -> Columns:
            places = np.array(run, np.int64)
            found = self._parse_alike(records[places], kinds, places)
            return dataclasses.replace(found, failed={**found.failed, **broken})

        for i, record in enumerate(records):
            features = example_message.parse(record)
            if features is None:
                broken[i] = (None, "is no tf.Example")
                continue
            own = {n: features[n][0] for n in self._columns if n in features}
            if any(kinds.get(name, kind) != kind for name, kind in own.items()):
                yield finish()
                kinds, run, broken = {}, [], {}
            kinds.update(own)
            run.append(i)
        yield finish()

    def _parse_alike(
        self, records: np.ndarray, kinds: Mapping[str, str], places: np.ndarray
    ) -> Columns:
        """Parses records whose features are all of the given kinds.

        Raises:
          tf.errors.InvalidArgumentError: Some are not.
        """
        from pipeline.compat import tf

        dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
        parsed = {}
        present = [name for name in self._columns if name in kinds]
        if present and len(records):
            spec = {name: tf.io.RaggedFeature(dtypes[kinds[name]]) for name in present}
            parsed = tf.io.parse_example(tf.constant(list(records)), spec)
        arrays, failed = [], {}
        for name in self._columns:
            if name not in parsed:
                arrays.append(pa.nulls(len(records)))
                continue
            splits = parsed[name].row_splits.numpy()
            values = pa.array(parsed[name].values.numpy(), _ARROW_TYPES[kinds[name]])
            sizes = np.diff(splits)
            arrays.append(values.take(pa.array(splits[:-1], mask=sizes != 1)))
            for i in np.flatnonzero(sizes > 1).tolist():
                reason = f"column {name} {_MANY.format(sizes[i])}"
                failed.setdefault(i, (name, reason))
        table = pa.record_batch(arrays, list(self._columns))
        if failed:
            good = np.ones(len(records), bool)
            good[list(failed)] = False
            table, places_kept = table.filter(pa.array(good)), places[good]
        else:
            places_kept = places
        return Columns(
            places_kept, table, {int(places[i]): why for i, why in failed.items()}
        )
