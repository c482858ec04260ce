"""How often each value of a column occurs, kept in Arrow arrays.

A million distinct strings take some 30 MB this way; a dict of Python objects takes
five times as much. New counts are gathered and added together when there are many.

When more than `limit` values are held, the less frequent half of the limit is
dropped, as in Misra and Gries' summaries (Agarwal et al., "Mergeable Summaries",
2012). `undercount` then bounds what is lost: a value's true count lies between the
count held (0 if none) and that plus `undercount`. Until then everything is exact and
does not depend on the order; afterwards the same order of rows and merges gives the
same counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.types import ColumnType

_PENDING = 65_536
"""So many values are gathered at least before they are added."""


class ValueCounts:
    """Counts of the values of an int or string column.

    Attributes:
      undercount: The most by which a count can be too low.
      truncated: Whether values were dropped.
    """

    def __init__(self, column_type: ColumnType, limit: int = 1_000_000):
        if limit < 2:
            raise ValueError(f"limit {limit} is below 2")
        self.limit = limit
        self.undercount = 0
        self.truncated = False
        self._type = {
            ColumnType.INT: pa.int64(),
            ColumnType.STRING: pa.large_binary(),
        }[column_type]
        self._values = pa.array([], self._type)
        self._counts = np.zeros(0, np.int64)
        self._most_held = 0
        self._pending: list[tuple[pa.Array, np.ndarray]] = []
        self._pending_size = 0

    def add(self, array: pa.Array) -> None:
        """Counts the values of an int64 or binary array; null is not counted."""
        found = pc.value_counts(array.drop_null())
        self._gather(
            found.field("values").cast(self._type), found.field("counts").to_numpy()
        )

    def merge(self, other: ValueCounts) -> None:
        """Adds what another one of the same type and limit has counted."""
        if (other.limit, other._type) != (self.limit, self._type):
            raise ValueError("the type or the limit of the other counts differs")
        other._flush()
        self.truncated |= other.truncated
        self.undercount += other.undercount
        self._most_held = max(self._most_held, other._most_held)
        self._gather(other._values, other._counts)
        self._flush()

    @property
    def distinct(self) -> int:
        """Number of different values; once truncated a lower bound."""
        self._flush()
        return self._most_held

    def most_frequent(self, count: int | None = None) -> list[tuple[bytes, int]]:
        """The values with the highest counts, or all, by falling count.

        Values of the same count stand in the order of their bytes. An int stands
        as its decimal text.
        """
        self._flush()
        values = self._values
        if pa.types.is_int64(self._type):
            values = values.cast(pa.string()).cast(pa.large_binary())
        order = _by_falling_count(values, self._counts)[:count]
        counts = self._counts[order].tolist()
        return list(zip(values.take(pa.array(order)).to_pylist(), counts, strict=True))

    def state(self) -> dict[str, Any]:
        """All that is held, in an order of its own; `from_state` restores it."""
        self._flush()
        order = _by_falling_count(self._values, self._counts)
        return {
            "values": self._values.take(pa.array(order)),
            "counts": self._counts[order],
            "undercount": self.undercount,
            "truncated": self.truncated,
            "most_held": self._most_held,
        }

    @classmethod
    def from_state(
        cls, column_type: ColumnType, limit: int, state: Mapping[str, Any]
    ) -> ValueCounts:
        """The inverse of `state`."""
        counts = cls(column_type, limit)
        counts._values = state["values"].cast(counts._type)
        counts._counts = np.array(state["counts"], np.int64)
        counts.undercount = state["undercount"]
        counts.truncated = state["truncated"]
        counts._most_held = state["most_held"]
        return counts

    def __getstate__(self) -> dict:
        self._flush()
        return self.__dict__

    def _gather(self, values: pa.Array, counts: np.ndarray) -> None:
        if not len(values):
            return
        self._pending.append((values, counts))
        self._pending_size += len(values)
        # Growing with what is held keeps the cost of a value constant.
        if self._pending_size >= max(_PENDING, len(self._values) // 2):
            self._flush()

    def _flush(self) -> None:
        if not self._pending_size:
            return
        parts = [(self._values, self._counts), *self._pending]
        self._pending, self._pending_size = [], 0
        encoded = pa.concat_arrays([v for v, _ in parts]).dictionary_encode()
        # Sums are exact although weights are float64: counts stay below 2**53.
        counts = np.bincount(
            encoded.indices.to_numpy(), weights=np.concatenate([c for _, c in parts])
        )
        self._values = encoded.dictionary
        self._counts = counts.astype(np.int64)
        self._most_held = max(self._most_held, len(self._counts))
        if len(self._counts) > self.limit:
            self._drop()

    def _drop(self) -> None:
        order = _by_falling_count(self._values, self._counts)
        kept, dropped = order[: self.limit // 2], order[self.limit // 2 :]
        self.truncated = True
        self.undercount += int(self._counts[dropped[0]])
        self._values = self._values.take(pa.array(kept))
        self._counts = self._counts[kept]


def _by_falling_count(values: pa.Array, counts: np.ndarray) -> np.ndarray:
    table = pa.table({"value": values, "count": counts})
    order = pc.sort_indices(
        table, sort_keys=[("count", "descending"), ("value", "ascending")]
    )
    return order.to_numpy()
