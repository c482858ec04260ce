"""Tests of pipeline/preprocess/value_points.py."""

from __future__ import annotations

import fractions
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.preprocess.value_points import ValuePoints

VALUES = st.lists(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.integers(-(2**63), 2**63 - 1).map(float),
        st.integers(-5, 5).map(float),
        st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-45, 3.4e38, -3.4e38]),
    ),
    max_size=60,
)
SHARES = np.arange(21) / 20


def points_of(values, limit=65_536):
    points = ValuePoints(limit)
    add(points, values)
    return points


def add(points, values):
    points.add(*np.unique(np.array(values, np.float64), return_counts=True))


def state(points):
    return {k: np.array(v).tolist() for k, v in vars(points).items()}


@st.composite
def partitions(draw):
    """Values and a division of them into parts, some of them empty."""
    values = draw(VALUES)
    cuts = draw(st.lists(st.integers(0, len(values)), max_size=6))
    edges = [0, *sorted(cuts), len(values)]
    shuffled = draw(st.permutations(values))
    parts = [shuffled[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    return values, draw(st.permutations(parts))


@given(partitions(), st.sampled_from([2, 3, 8, 65_536]))
@settings(deadline=None)
def test_state_depends_on_nothing_but_the_values(partition, limit):
    values, parts = partition
    expected = state(points_of(values, limit))
    streamed, merged = ValuePoints(limit), ValuePoints(limit)
    for part in parts:
        add(streamed, part)
        merged.merge(pickle.loads(pickle.dumps(points_of(part, limit))))
    assert state(streamed) == expected
    assert state(merged) == expected


@given(VALUES.filter(bool))
@settings(deadline=None)
def test_quantiles_are_exact_up_to_the_limit(values):
    points = points_of(values)
    ordered = sorted(v + 0.0 for v in values)
    expected = [
        ordered[max(0, -(-fractions.Fraction(i, 20) * len(values) // 1) - 1)]
        for i in range(21)
    ]
    assert points.quantiles(SHARES).tolist() == expected
    assert points.rank_error == 0
    assert points.distinct == len(set(ordered))
    assert points.total == len(values)


@given(VALUES.filter(bool), st.integers(2, 12))
@settings(deadline=None)
@example([1.0, 1.0, 1.5, 2.0], 3)
def test_ranks_are_within_the_reported_error(values, limit):
    points = points_of(values, limit)
    assert len(points._counts) <= limit
    error = points.rank_error + 1e-9
    ordered = np.sort(values)
    for share, value in zip(SHARES, points.quantiles(SHARES), strict=True):
        assert np.mean(ordered <= value) >= share - error
        assert np.mean(ordered < value) <= share + error
    assert points.quantiles([0.0, 1.0]).tolist() == [ordered[0], ordered[-1]]
    if len(set(values)) > limit:
        assert points.rank_error > 0 and points.distinct is None


@pytest.mark.parametrize(
    "draw",
    [
        lambda r, n: r.normal(size=n).astype(np.float32),
        lambda r, n: r.lognormal(0, 3, n).astype(np.float32),
        lambda r, n: 1.6e9 + r.integers(0, 3e7, n),
        lambda r, n: np.where(r.random(n) < 0.6, 0, r.exponential(100, n)),
    ],
    ids=["normal", "lognormal", "timestamps", "many zeros"],
)
def test_usual_data_beyond_the_limit(draw):
    values = draw(np.random.default_rng(1), 400_000).astype(np.float64)
    points = ValuePoints()
    for part in np.array_split(values, 90):
        add(points, part)
    assert points.distinct is None
    assert points.rank_error < 3e-4
    exact = np.quantile(values, SHARES, method="inverted_cdf")
    ranks = np.searchsorted(np.sort(values), points.quantiles(SHARES)) / len(values)
    true = np.searchsorted(np.sort(values), exact) / len(values)
    np.testing.assert_allclose(ranks, true, atol=points.rank_error)
    assert len(points._counts) >= points.limit / 2


@given(VALUES.filter(bool), st.integers(2, 9), st.sampled_from([3, 65_536]))
@settings(deadline=None)
def test_cuts_are_values_that_rise_and_leave_no_part_empty(values, parts, limit):
    cuts = points_of(values, limit).cuts(parts)
    assert 1 <= len(cuts) <= parts - 1
    assert np.all(np.diff(cuts) > 0)
    assert set(cuts) <= set(np.array(values) + 0.0)
    if len(set(values)) > 1 and limit > 3:
        sizes = np.bincount(np.searchsorted(cuts, values, side="right"))
        assert np.all(sizes > 0) and len(sizes) == len(cuts) + 1


@pytest.mark.parametrize(
    ("values", "parts", "cuts"),
    [
        (range(1, 11), 2, [6]),
        (range(100), 4, [25, 50, 75]),
        ([0] * 60 + list(range(1, 41)), 4, [1, 16]),
        ([1] * 49 + [2] * 50 + [3], 2, [2]),
        ([1] * 10 + [9] * 90, 4, [9]),
        ([7, 7, 7], 4, [7]),
        ([1, 2], 10, [2]),
    ],
)
def test_cuts_of_small_cases(values, parts, cuts):
    assert points_of(list(values)).cuts(parts).tolist() == cuts


def test_no_values():
    points = ValuePoints()
    points.merge(ValuePoints())
    assert (points.total, points.distinct, points.rank_error) == (0, 0, 0.0)
    with pytest.raises(ValueError, match="no values"):
        points.quantiles(SHARES)
    with pytest.raises(ValueError, match="no values"):
        points.cuts(3)


def test_limits():
    with pytest.raises(ValueError, match="limit 1"):
        ValuePoints(1)
    with pytest.raises(ValueError, match="limits differ"):
        ValuePoints(4).merge(ValuePoints(5))


@given(VALUES, st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5))
@settings(deadline=None)
def test_counts_below(values, cuts):
    cuts = np.sort(cuts)
    expected = [sum(v < c for v in values) for c in cuts]
    assert points_of(values).counts_below(cuts).tolist() == expected
    points = points_of(values, 3)
    error = points.rank_error * len(values) + 1e-6
    assert np.all(np.abs(points.counts_below(cuts) - expected) <= error)
