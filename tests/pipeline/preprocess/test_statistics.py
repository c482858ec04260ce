"""Tests of pipeline/preprocess/statistics.py and its parts moments and summaries."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess.statistics import ColumnStatistics, DatasetStatistics
from pipeline.preprocess.summaries import DatasetSummary
from pipeline.types import ColumnType

SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float32()), ("s", pa.binary())])
TYPES = {"i": ColumnType.INT, "f": ColumnType.FLOAT, "s": ColumnType.STRING}

INTS = st.none() | st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.one_of(
    st.none(),
    st.floats(width=32),
    st.sampled_from([1e-45, -1e-45, 3.4e38, -3.4e38, 0.0, -0.0]).map(
        lambda x: float(np.float32(x))
    ),
)
STRINGS = st.none() | st.binary(max_size=3)
MISSING_COLUMN = st.none()


@st.composite
def parts(draw):
    """Batches, some of them empty, of columns some of which have no value at all."""
    i, f, s = (
        draw(st.sampled_from([cells, cells, MISSING_COLUMN]))
        for cells in (INTS, FLOATS, STRINGS)
    )
    row = st.tuples(st.sampled_from(["train", "eval"]), i, f, s)
    return draw(st.lists(st.lists(row, max_size=12), max_size=6))


def add_all(statistics, rows):
    for split in ("train", "eval"):
        mine = [row[1:] for row in rows if row[0] == split]
        columns = list(zip(*mine, strict=True)) or [[], [], []]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        statistics.add(split, pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    return statistics


def empty():
    return DatasetStatistics(TYPES, want_values={"i", "s"})


@given(parts(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=80)
def test_any_merge_equals_one_pass(batches, random):
    rows = [row for batch in batches for row in batch]
    one_pass = add_all(empty(), rows).summary()
    heap = [add_all(empty(), batch) for batch in batches] + [add_all(empty(), [])]
    while len(heap) > 1:
        random.shuffle(heap)
        left, right = heap.pop(), heap.pop()
        heap.append(pickle.loads(pickle.dumps(left)).merge(right))
    assert heap[0].summary() == one_pass


@given(parts())
@settings(deadline=None, max_examples=80)
def test_equals_numpy(batches):
    rows = [row for batch in batches for row in batch if row[0] == "train"]
    columns = add_all(empty(), rows)["train"]
    for k, name in ((1, "i"), (2, "f")):
        given_values = [r[k] for r in rows if r[k] is not None]
        values = np.array([v for v in given_values if math.isfinite(v)], np.float64)
        summary = columns[name].summary()
        assert summary.count == len(rows)
        assert summary.missing == len(rows) - len(given_values)
        assert summary.non_finite == len(given_values) - len(values)
        if not len(values):
            assert summary.numbers is None
            continue
        numbers = summary.numbers
        logs = np.sign(values) * np.log1p(np.abs(values))
        scale = np.abs(values).max()
        assert numbers.mean == pytest.approx(values.mean(), abs=1e-12 * scale)
        assert numbers.variance == pytest.approx(values.var(), abs=1e-12 * scale**2)
        assert numbers.log_mean == pytest.approx(logs.mean(), abs=1e-12)
        assert numbers.log_variance == pytest.approx(logs.var(), abs=1e-9)
        assert (numbers.min, numbers.max) == (values.min(), values.max())
        assert numbers.zeros == np.sum(values == 0)
        assert len(numbers.quantiles) == 21
        assert summary.distinct == len(set(given_values if name == "i" else values))


@given(parts())
@settings(deadline=None, max_examples=50)
def test_json_keeps_everything(batches):
    statistics = empty()
    for batch in batches:
        add_all(statistics, batch)
    summary = statistics.summary()
    text = json.dumps(summary.to_json(), allow_nan=False)
    assert DatasetSummary.from_json(json.loads(text)) == summary


def test_variance_of_close_values_far_from_zero():
    """The sum of squares minus the square of sums would give 0 or less here."""
    values = 1.6e12 + np.arange(1000) % 7
    column = ColumnStatistics(ColumnType.INT)
    for part in np.array_split(values.astype(np.int64), 13):
        column.merge(_column_of(pa.array(part)))
    variance = column.summary().numbers.variance
    assert variance == pytest.approx(np.var(np.arange(1000) % 7), rel=1e-6)


def _column_of(array):
    column = ColumnStatistics(ColumnType.INT)
    column.add(array)
    return column


def test_values_are_counted_only_where_asked():
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 1]), pa.array([0.5, 2], pa.float32()), pa.array([b"a", b"b"])],
        schema=SCHEMA,
    )
    statistics = DatasetStatistics(TYPES)
    statistics.add("train", batch)
    columns = statistics.summary().splits["train"]
    assert all(column.values is None for column in columns.values())
    assert [columns[name].distinct for name in "ifs"] == [1, 2, None]


def test_unlike_statistics_are_not_merged():
    with pytest.raises(ValueError, match="different kinds"):
        ColumnStatistics(ColumnType.INT).merge(ColumnStatistics(ColumnType.FLOAT))
    with pytest.raises(ValueError, match="different kinds"):
        ColumnStatistics(ColumnType.INT).merge(ColumnStatistics(ColumnType.INT, True))
    one = add_all(empty(), [])
    with pytest.raises(ValueError, match="different columns"):
        one.merge(add_all(DatasetStatistics({"i": ColumnType.INT}), []))
