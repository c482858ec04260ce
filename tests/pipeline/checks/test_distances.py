"""Drift measures: 0 for equals, symmetric, at most 1, and right on known cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.checks import distances
from pipeline.preprocess.value_points import ValuePoints

COUNTS = st.dictionaries(
    st.binary(max_size=2), st.integers(1, 10**9), min_size=1, max_size=8
)
VALUES = st.lists(
    st.floats(-(2.0**99), 2.0**99, width=32) | st.sampled_from([0.0, 1.0, 2.0]),
    min_size=1,
    max_size=40,
)


def points(values, limit=65_536):
    made = ValuePoints(limit)
    made.add(*np.unique(np.array(values, np.float64), return_counts=True))
    return made


@given(COUNTS, COUNTS, st.integers(1, 9))
def test_l_infinity(one, other, times):
    distance = distances.l_infinity(one, other)
    assert 0 <= distance <= 1
    assert distance == distances.l_infinity(other, one)
    multiple = {value: count * times for value, count in one.items()}
    assert distances.l_infinity(one, multiple) == pytest.approx(0, abs=1e-12)
    if not set(one) & set(other):
        largest = max(max(c.values()) / sum(c.values()) for c in (one, other))
        assert distance == pytest.approx(largest)


@given(VALUES, VALUES, st.sampled_from([4, 65_536]))
@settings(deadline=None)
def test_jensen_shannon_of_numbers(one, other, limit):
    a, b = points(one, limit), points(other, limit)
    distance = distances.numbers(a, b)
    assert 0 <= distance <= 1
    assert distance == pytest.approx(distances.numbers(b, a), abs=1e-12)
    assert distances.numbers(a, points(one * 3, limit)) == pytest.approx(0, abs=1e-9)


def test_known_values():
    counts = ({b"a": 1, b"b": 3}, {b"a": 5, b"c": 5})
    assert distances.l_infinity(*counts) == 0.75
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])
    assert distances.jensen_shannon(p, q) == pytest.approx(0.5)
    assert distances.jensen_shannon(np.array([1.0, 0]), np.array([0, 1.0])) == 1
    assert distances.numbers(points([1, 2, 3]), points([11, 12, 13])) == 1
    assert distances.numbers(points([5, 5]), points([6])) == 1


def test_samples_of_one_distribution_are_near_and_a_shift_is_far():
    random = np.random.default_rng(3)
    base = points(random.normal(size=20_000))
    assert distances.numbers(base, points(random.normal(size=500))) < 0.05
    assert distances.numbers(base, points(random.normal(1, 1, 20_000))) > 0.1
