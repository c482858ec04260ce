"""Mean and variance of a stream, exact and so independent of order and merges."""

from __future__ import annotations

import math

import numpy as np

# Every finite float64 is a whole number of these: frexp gives a fraction of 53 bits
# and an exponent of at least -1073.
UNIT_EXPONENT = -1126
_LOW_BITS = 26
_LOW_MASK = (1 << _LOW_BITS) - 1
# Values of changing exponents are sorted first, so that Python sees few sums.
_MAX_RUNS = 1000
# Veltkamp's constant for float64: 2**27 + 1.
_SPLITTER = 134_217_729.0


class Moments:
    """Count, sum and sum of squares of numbers, without any rounding.

    Sums are whole multiples of 2**UNIT_EXPONENT. With them the mean and the variance
    are rounded once, when they are asked for; the variance loses no digits by
    subtraction; and the same multiset of numbers gives the same bits, however it was
    divided among workers and days.

    A number must be 0 or lie between 2**-400 and 2**400 in size, as every float32,
    every int64 and their logarithms do.
    """

    def __init__(self, count: int = 0, total: int = 0, squares: int = 0):
        self.count = count
        self.total = total
        self.squares = squares

    def add(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Adds float64 values, each so many times (below 2**26 in all)."""
        squares = values * values
        self.count += int(counts.sum())
        self.total += _exact_sum(values, counts)
        self.squares += _exact_sum(squares, counts)
        rest = _rounding_of_squares(values, squares)
        if rest.any():
            self.squares += _exact_sum(rest, counts)

    def merge(self, other: Moments) -> None:
        """Adds what another one has gathered."""
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """The mean; NaN without values."""
        if not self.count:
            return math.nan
        return self.total / (self.count << -UNIT_EXPONENT)

    @property
    def variance(self) -> float:
        """The population variance (divided by the count); NaN without values."""
        if not self.count:
            return math.nan
        # Of n, sum s and squares q: (n q - s**2) / n**2, in whole numbers.
        scaled = (self.count * self.squares << -UNIT_EXPONENT) - self.total**2
        return scaled / (self.count**2 << -2 * UNIT_EXPONENT)


def _exact_sum(values: np.ndarray, counts: np.ndarray) -> int:
    """The sum of values times counts in multiples of 2**UNIT_EXPONENT.

    The halves of the fractions are summed by exponent as int64, which holds them.
    """
    if not len(values):
        return 0
    fractions, exponents = np.frexp(values)
    exponents = exponents.astype(np.int16)
    if np.count_nonzero(np.diff(exponents)) > _MAX_RUNS:
        order = np.argsort(exponents, kind="stable")
        fractions, exponents, counts = fractions[order], exponents[order], counts[order]
    whole = (fractions * 2.0**53).astype(np.int64)
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(exponents)) + 1])
    high = np.add.reduceat((whole >> _LOW_BITS) * counts, firsts)
    low = np.add.reduceat((whole & _LOW_MASK) * counts, firsts)
    total = 0
    for exponent, upper, lower in zip(
        exponents[firsts].tolist(), high.tolist(), low.tolist(), strict=True
    ):
        total += ((upper << _LOW_BITS) + lower) << (exponent - 53 - UNIT_EXPONENT)
    return total


def _rounding_of_squares(values: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """What rounding left of the squares, exactly (Dekker's product, 1971)."""
    scaled = _SPLITTER * values
    high = scaled - (scaled - values)
    low = values - high
    return ((high * high - squares) + 2 * high * low) + low * low
