"""Quantiles of a stream from a bounded, mergeable count of its values.

Each distinct value is counted. While there are at most `limit` of them, all
quantiles are exact. Beyond it, neighbouring values are counted together in cells,
each keeping its count and its lowest and highest value.

Cells are made by rounding: the bits of a float64, read as an integer of the same
order, are shifted right by `level` bits, and the level rises until at most `limit`
cells are occupied. Cells of a level are unions of cells of the level below, and a
part of the data never occupies more cells than the whole. So the final level, and
with it the whole state, depends only on the multiset of values: not on the order,
the batches or the merges. That is why this is our own. Apache DataSketches' KLL is
randomised (two passes over the same data gave different quantiles, so a rerun would
give another model), and its t-digest was off by 1 % at the deciles.

At least half of `limit` cells stay occupied, because one level more at most halves
them. How the rows lie in them depends on the data: `rank_error` is the share of
rows in the fullest cell that holds different values, and no rank is off by more.
"""

from __future__ import annotations

import numpy as np


class ValuePoints:
    """Counts of float64 values in at most `limit` cells.

    NaN must not be added; -0.0 counts as 0.0.
    """

    def __init__(self, limit: int = 65_536):
        if limit < 2:
            raise ValueError(f"limit {limit} leaves no cell for each sign")
        self.limit = limit
        self.level = 0
        # At level 0 both are the same array: each cell holds one value.
        self._lows = self._highs = np.zeros(0)
        self._counts = np.zeros(0, np.int64)

    def add(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Counts rising float64 values, each so many times."""
        if len(values):
            values = values + 0.0
            self._combine(values, values, counts, 0)

    def merge(self, other: ValuePoints) -> None:
        """Adds what another one of the same limit has counted."""
        if other.limit != self.limit:
            raise ValueError(f"limits differ: {self.limit} and {other.limit}")
        self._combine(other._lows, other._highs, other._counts, other.level)

    @property
    def cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lowest value, highest value and count of each cell, rising."""
        return self._lows, self._highs, self._counts

    @classmethod
    def from_cells(
        cls, limit: int, level: int, lows: np.ndarray, highs: np.ndarray, counts
    ) -> ValuePoints:
        """The points whose limit, level and cells these are."""
        points = cls(limit)
        points.level = level
        points._lows, points._counts = lows, counts
        points._highs = highs if level else lows
        return points

    @property
    def total(self) -> int:
        return int(self._counts.sum())

    @property
    def distinct(self) -> int | None:
        """How many different values there were, or None if not known any more."""
        return len(self._counts) if self.level == 0 else None

    @property
    def rank_error(self) -> float:
        """The most by which the rank of a quantile can be off, as share of rows."""
        mixed = self._counts[self._lows != self._highs]
        return float(mixed.max() / self._counts.sum()) if len(mixed) else 0.0

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The lowest values with at least these shares of the rows at or below them.

        As numpy.quantile(method="inverted_cdf"). In a cell of several values the
        result lies between its lowest and highest in proportion to the rank.

        Raises:
          ValueError: There are no values.
        """
        total = self._require_values()
        upto = np.cumsum(self._counts)
        # Rounded since 0.15 * 20 rows may come out just above 3.
        ranks = np.ceil(np.round(np.asarray(shares) * total, 6)).clip(1, total)
        cells = np.searchsorted(upto, ranks)
        lows, highs, counts = (
            a[cells] for a in (self._lows, self._highs, self._counts)
        )
        # The first row of a cell has its lowest value, the last one its highest.
        inside = (ranks - (upto[cells] - counts) - 1) / np.maximum(counts - 1, 1)
        return np.clip(lows * (1 - inside) + highs * inside, lows, highs)

    def counts_below(self, cuts: np.ndarray) -> np.ndarray:
        """How many rows lie below each of the rising cuts, as float64.

        Exact but for a cell that a cut divides: its rows count in proportion.
        """
        lows, highs, counts = self._lows, self._highs, self._counts
        upto = np.concatenate([[0.0], np.cumsum(counts)])
        whole = np.searchsorted(highs, cuts, side="left")
        below = upto[whole]
        inside = np.minimum(whole, max(len(lows) - 1, 0))
        if len(lows):
            divided = (whole < len(lows)) & (lows[inside] < cuts)
            width = np.where(divided, highs[inside] - lows[inside], 1.0)
            share = np.where(divided, (cuts - lows[inside]) / width, 0.0)
            below = below + share * counts[inside]
        return below

    def cuts(self, parts: int) -> np.ndarray:
        """Rising values that divide the rows as evenly as may be, at most parts - 1.

        A cut c stands for a part below it and a part from it on. Near each of the
        shares 1/parts, 2/parts, ... the value is taken whose share of rows below
        it is nearest (the lower at a tie); values that are taken twice count once.
        The lowest value never is a cut, since no row lies below it, unless it is
        the only one.

        Raises:
          ValueError: There are no values.
        """
        total = self._require_values()
        if len(self._lows) == 1:
            return self._lows.copy()
        below = np.cumsum(self._counts)[:-1] / total
        targets = np.arange(1, parts) / parts
        places = np.searchsorted(below, targets)
        right = np.minimum(places, len(below) - 1)
        left = np.maximum(places - 1, 0)
        nearer_left = targets - below[left] <= below[right] - targets
        return self._lows[1:][np.unique(np.where(nearer_left, left, right))]

    def _require_values(self) -> int:
        total = self.total
        if not total:
            raise ValueError("no values")
        return total

    def _combine(
        self, lows: np.ndarray, highs: np.ndarray, counts: np.ndarray, level: int
    ) -> None:
        """Adds cells: joins them with ours and raises the level as far as needed."""
        exact = self.level == level == 0
        lows = np.concatenate([self._lows, lows])
        order = np.argsort(lows, kind="stable")
        lows = lows[order]
        counts = np.concatenate([self._counts, counts])[order]
        highs = lows if exact else np.concatenate([self._highs, highs])[order]
        keys = _ordered_bits(lows)
        # How many bits two neighbours differ in is the level that joins them.
        differing = (keys[1:] ^ keys[:-1]).view(np.uint64)
        self.level = _lowest_level(differing, max(self.level, level), self.limit)
        is_first = np.ones(len(lows), bool)
        is_first[1:] = _apart(differing, self.level)
        firsts = np.flatnonzero(is_first)
        self._lows = lows[firsts]
        self._counts = np.add.reduceat(counts, firsts) if len(firsts) else counts
        if self.level == 0:
            self._highs = self._lows
        else:
            self._highs = np.maximum.reduceat(highs, firsts)


def _ordered_bits(values: np.ndarray) -> np.ndarray:
    """The bits of float64 values as int64 that compare as the values do."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _apart(differing: np.ndarray, level: int) -> np.ndarray:
    return differing >> np.uint64(level) != 0


def _lowest_level(differing: np.ndarray, level: int, limit: int) -> int:
    """The lowest level from `level` on with at most `limit` cells."""
    low, high = level, 63
    while low < high:
        middle = (low + high) // 2
        if np.count_nonzero(_apart(differing, middle)) < limit:
            high = middle
        else:
            low = middle + 1
    return low
