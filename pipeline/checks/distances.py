"""How far apart two distributions are, as TensorFlow Data Validation measures it.

Both distances are 0 for equal distributions, 1 at most, and symmetric. TFDV's
definitions: https://www.tensorflow.org/tfx/data_validation/get_started, "Checking data
skew and drift".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.preprocess.value_points import ValuePoints

_PARTS = 20


def l_infinity(one: Mapping[bytes, int], other: Mapping[bytes, int]) -> float:
    """The largest difference of a value's shares: max over v of |p(v) - q(v)|.

    Args:
      one: Counts by value; at least one.
      other: Likewise.
    """
    total, other_total = sum(one.values()), sum(other.values())
    return max(
        abs(one.get(value, 0) / total - other.get(value, 0) / other_total)
        for value in {*one, *other}
    )


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    """The Jensen-Shannon divergence in bits of two discrete distributions.

    (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2 and KL(p || m) the sum of
    p log2(p / m) (Lin, "Divergence Measures Based on the Shannon Entropy", 1991).

    Args:
      p: Shares that add up to 1.
      q: Likewise, of the same length.
    """
    middle = (p + q) / 2
    divergence = 0.0
    for shares in (p, q):
        # A share below half of the smallest number has a middle of 0.
        some = (shares > 0) & (middle > 0)
        divergence += np.sum(shares[some] * np.log2(shares[some] / middle[some])) / 2
    return float(np.clip(divergence, 0.0, 1.0))


def numbers(one: ValuePoints, other: ValuePoints) -> float:
    """The Jensen-Shannon divergence of two columns of numbers.

    As in TFDV both are brought to common bins first. The bins are divided by the
    cuts of either column into twenty parts of equal counts, so neither's outliers
    put all rows into one bin, and by either's lowest value.

    Args:
      one: At least one number.
      other: Likewise.
    """
    lowest = [points.quantiles(np.array([0.0])) for points in (one, other)]
    cuts = np.unique(np.concatenate([one.cuts(_PARTS), other.cuts(_PARTS), *lowest]))
    return jensen_shannon(_shares(one, cuts), _shares(other, cuts))


def _shares(points: ValuePoints, cuts: np.ndarray) -> np.ndarray:
    total = float(points.total)
    below = np.concatenate([[0.0], points.counts_below(cuts), [total]])
    return np.diff(below) / total
