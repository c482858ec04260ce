"""How sure the difference of two models' metrics is, by resampling rows.

Percentile intervals of the paired bootstrap (Efron and Tibshirani, "An Introduction to
the Bootstrap", 1993, chapter 13): both models are judged on the same drawn rows.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pipeline.retraining.scores import Metric


@dataclasses.dataclass(frozen=True)
class Interval:
    """A difference, and where it lies with the asked confidence.

    Attributes:
      difference: On the rows themselves; above 0 where the candidate is better.
      low: Lower end.
      high: Upper end.
    """

    difference: float
    low: float
    high: float


def interval(
    candidate: Metric,
    champion: Metric,
    weights: np.ndarray,
    smaller_is_better: bool,
    confidence: float,
    samples: int,
    seed: int,
) -> Interval:
    """Returns the difference of a metric with its interval.

    Args:
      candidate: The one whose advantage is positive.
      champion: The other one, on the same rows.
      weights: float64 [rows].
      smaller_is_better: Whether the metric is a loss.
      confidence: Between 0 and 1.
      samples: How often rows are drawn.
      seed: Of the drawing; the same seed gives the same interval.
    """
    sign = -1.0 if smaller_is_better else 1.0

    def difference(drawn: np.ndarray) -> float:
        return sign * (candidate.value(drawn) - champion.value(drawn))

    rows = len(weights)
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(samples):
        counts = np.bincount(draw.integers(0, rows, rows), minlength=rows)
        found.append(difference(weights * counts))
    # A drawing may hold one class only, for which there is no AUC.
    known = np.array(found)[np.isfinite(found)]
    if not known.size:
        return Interval(difference(weights), float("-inf"), float("inf"))
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(difference(weights), float(low), float(high))
