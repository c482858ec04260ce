"""Tests of pipeline/preprocess/value_counts.py."""

from __future__ import annotations

import collections
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess import value_counts
from pipeline.preprocess.value_counts import ValueCounts
from pipeline.types import ColumnType

STRINGS = st.none() | st.binary(max_size=2) | st.sampled_from([b"a", b"b", b"\0", b""])
INTS = st.none() | st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])
KINDS = {
    ColumnType.STRING: (STRINGS, pa.binary(), lambda v: v),
    ColumnType.INT: (INTS, pa.int64(), lambda v: str(v).encode()),
}


@st.composite
def data(draw):
    kind = draw(st.sampled_from(list(KINDS)))
    values, arrow, to_bytes = KINDS[kind]
    parts = draw(st.lists(st.lists(values, max_size=25), max_size=5))
    exact = collections.Counter(to_bytes(v) for p in parts for v in p if v is not None)
    return kind, [pa.array(p, arrow) for p in parts], exact


def ranked(counter):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def merged(kind, parts, limit):
    total = ValueCounts(kind, limit)
    for part in parts:
        one = ValueCounts(kind, limit)
        one.add(part)
        total.merge(pickle.loads(pickle.dumps(one)))
    return total


def streamed(kind, parts, limit):
    total = ValueCounts(kind, limit)
    for part in parts:
        total.add(part)
        total.most_frequent(0)
    return total


@given(data())
@settings(deadline=None)
def test_exact_up_to_the_limit(drawn):
    kind, parts, exact = drawn
    for way in (merged, streamed):
        for order in (parts, parts[::-1]):
            counts = way(kind, order, 1000)
            assert counts.most_frequent() == ranked(exact)
            assert counts.most_frequent(2) == ranked(exact)[:2]
            assert counts.distinct == len(exact)
            assert (counts.truncated, counts.undercount) == (False, 0)


@given(data(), st.integers(2, 6), st.sampled_from([merged, streamed]))
@settings(deadline=None)
def test_bounds_hold_beyond_the_limit(drawn, limit, way):
    kind, parts, exact = drawn
    counts = way(kind, parts, limit)
    held = dict(counts.most_frequent())
    assert len(held) <= limit
    assert counts.truncated == (counts.undercount > 0)
    assert counts.truncated or held == exact
    for value, true in exact.items():
        assert held.get(value, 0) <= true <= held.get(value, 0) + counts.undercount
    assert len(held) <= counts.distinct <= len(exact)
    again = way(kind, parts, limit)
    assert again.most_frequent() == counts.most_frequent()


def test_the_frequent_survive_a_flood(monkeypatch):
    monkeypatch.setattr(value_counts, "_PENDING", 50)
    counts = ValueCounts(ColumnType.STRING, limit=200)
    for batch in range(50):
        counts.add(
            pa.array([b"often"] * 20 + [b"%d.%d" % (batch, i) for i in range(80)])
        )
    assert counts.truncated and counts.distinct > 100
    assert counts.most_frequent(1) == [(b"often", 1000)]
    assert counts.undercount < 60


def test_slices_and_null():
    array = pa.array([b"x", b"y", None, b"y", b"z"])
    counts = ValueCounts(ColumnType.STRING)
    counts.add(array.slice(1, 3))
    assert counts.most_frequent() == [(b"y", 2)]


def test_only_like_is_merged_with_like():
    with pytest.raises(ValueError, match="differs"):
        ValueCounts(ColumnType.INT).merge(ValueCounts(ColumnType.STRING))
    with pytest.raises(ValueError, match="differs"):
        ValueCounts(ColumnType.INT, 5).merge(ValueCounts(ColumnType.INT, 6))
    with pytest.raises(ValueError, match="limit 1"):
        ValueCounts(ColumnType.INT, 1)
