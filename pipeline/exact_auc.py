"""The area under the ROC curve, counted from the rows themselves."""

from __future__ import annotations

import numpy as np


class ExactAuc:
    """The share of pairs of both classes in the right order, ties counting half.

    Estimators report an approximation over 200 thresholds. Scores are sorted once, so
    other weights of the same rows, as a bootstrap has them, cost O(rows).

    Args:
      positive: bool [rows], which rows are of the second class.
      scores: Any number that rises with its probability, [rows].
    """

    def __init__(self, positive: np.ndarray, scores: np.ndarray):
        self._order = np.argsort(scores, kind="stable")
        ordered = scores[self._order]
        self._positive = positive[self._order]
        self._groups = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])

    def value(self, weights: np.ndarray) -> float:
        """Returns the area; NaN where the weights leave no pair.

        Args:
          weights: float64 [rows], at least 0.
        """
        if not len(weights):
            return float("nan")
        weights = weights[self._order]
        positive = np.where(self._positive, weights, 0.0)
        of_group = np.add.reduceat(positive, self._groups)
        others = np.add.reduceat(weights, self._groups) - of_group
        below = np.cumsum(others) - others
        pairs = of_group.sum() * others.sum()
        if pairs <= 0:
            return float("nan")
        return float(np.dot(of_group, below + others / 2) / pairs)
