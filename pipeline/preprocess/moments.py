"""Mean and variance of a stream, mergeable without loss of digits."""

from __future__ import annotations

import math

import numpy as np


class Moments:
    """Count, mean and squared deviations of finite float64 values.

    Batches are combined by the parallel formula of Chan, Golub and LeVeque
    ("Updating Formulae and a Pairwise Algorithm for Computing Sample Variances",
    1979), which subtracts no large sums from each other.
    """

    def __init__(self):
        self.count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, values: np.ndarray) -> None:
        """Adds finite float64 values."""
        if len(values):
            mean = values.mean()
            deviations = values - mean
            # What rounding left of the mean ("corrected two-pass algorithm").
            rest = deviations.mean()
            squares = np.square(deviations - rest).sum()
            self._combine(len(values), float(mean + rest), float(squares))

    def merge(self, other: Moments) -> None:
        """Adds what another one has gathered."""
        if other.count:
            self._combine(other.count, other._mean, other._squares)

    @property
    def mean(self) -> float:
        """The mean; NaN without values."""
        return self._mean if self.count else math.nan

    @property
    def variance(self) -> float:
        """The population variance (divided by the count); NaN without values."""
        return self._squares / self.count if self.count else math.nan

    def _combine(self, count: int, mean: float, squares: float) -> None:
        total = self.count + count
        delta = mean - self._mean
        self._squares += squares + delta * delta * (self.count * count / total)
        self._mean += delta * (count / total)
        self.count = total
