"""Metrics by the values of chosen columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from pipeline.diagnostics import measures
from pipeline.diagnostics.rows import Rows

_MAX_VALUES = 50
_RANGES = 4
MISSING = "(missing)"


@dataclasses.dataclass(frozen=True)
class Slice:
    """The rows with a value of a column.

    Attributes:
      column: Name of the column.
      value: The value as text, or a range of numbers.
      rows: How many rows there are.
      metrics: Their metrics.
    """

    column: str
    value: str
    rows: int
    metrics: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Sliced:
    """The slices of the chosen columns.

    Attributes:
      slices: By column as chosen, the largest first.
      left_out: By column, how many values have too few rows or are beyond the 50 most
        frequent ones.
    """

    slices: tuple[Slice, ...] = ()
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)


def in_ranges(values: np.ndarray) -> np.ndarray:
    """Returns numbers as text: each value, or quarters where there are many.

    Args:
      values: float64 [rows]; NaN stands for missing.
    """
    there = ~np.isnan(values)
    distinct = np.unique(values[there])
    texts = np.full(len(values), MISSING, object)
    if len(distinct) <= _MAX_VALUES:
        texts[there] = [f"{value:g}" for value in values[there]]
        return texts
    edges = np.unique(np.quantile(values[there], np.arange(_RANGES + 1) / _RANGES))
    place = np.searchsorted(edges[1:-1], values[there], side="left")
    names = [
        f"{low:g} to {high:g}" for low, high in zip(edges[:-1], edges[1:], strict=True)
    ]
    texts[there] = np.array(names, object)[place]
    return texts


def of_columns(rows: Rows, texts: Mapping[str, np.ndarray], min_rows: int) -> Sliced:
    """Returns the slices with enough rows.

    Args:
      rows: All rows.
      texts: By column, its values as text, [rows].
      min_rows: Values with fewer rows are left out.
    """
    found: list[Slice] = []
    left_out: dict[str, int] = {}
    for column, values in texts.items():
        names, places, counts = np.unique(
            values.astype(str), return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        kept = [n for n in order[:_MAX_VALUES] if counts[n] >= min_rows]
        left_out[column] = len(names) - len(kept)
        for number in kept:
            part = rows.where(places == number)
            found.append(
                Slice(column, str(names[number]), len(part), measures.metrics(part))
            )
    return Sliced(tuple(found), left_out)
