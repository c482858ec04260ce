"""Other formats against the SavedModel, on real rows."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np

Rows = Mapping[str, np.ndarray]
Run = Callable[[Rows], Rows]

_REPEATS = {1: 50, 1000: 10}


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far answers are from those of the SavedModel.

    Attributes:
      largest: Over all outputs and rows; relative where a value exceeds 1; infinity
        where a value is no number, or a shape is another.
      mean: Of the output that differs most.
      output: That output.
    """

    largest: float
    mean: float
    output: str


def difference(found: Rows, wanted: Rows) -> Difference:
    """Returns the difference of the outputs in `wanted`."""
    worst = Difference(0.0, 0.0, "")
    for name, value in wanted.items():
        answer = found.get(name)
        if (
            answer is None
            or answer.shape != value.shape
            or not np.isfinite(answer).all()
        ):
            return Difference(np.inf, np.inf, name)
        each = np.abs(answer - value) / np.maximum(1, np.abs(value))
        if each.size and each.max() >= worst.largest:
            worst = Difference(float(each.max()), float(each.mean()), name)
    return worst


def take(values: Rows, rows: int) -> dict[str, np.ndarray]:
    """Returns so many rows, taken again from the first where there are too few."""
    return {
        name: value[np.arange(rows) % max(len(value), 1)]
        for name, value in values.items()
    }


def latency_ms(run: Run, values: Rows) -> dict[str, float]:
    """Returns the median time of a call with one row, and with 1,000, in ms."""
    found = {}
    for rows, repeats in _REPEATS.items():
        given = take(values, rows)
        run(given)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run(given)
            times.append(time.perf_counter() - start)
        found[str(rows)] = round(statistics.median(times) * 1e3, 4)
    return found
