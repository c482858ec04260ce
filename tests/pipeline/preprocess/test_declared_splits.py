"""Splits by time and by a column's values."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import times
from pipeline.preprocess import splits
from pipeline.types import ColumnSplit, TimeSplit

BY_DATE = TimeSplit("d", {"eval": "2013-11-01T00:00:00", "test": "2013-12-01T00:00:00"})


def assign(values, kind, split):
    batch = pa.record_batch([pa.array(values, kind)], ["d"])
    numbers = splits.assign(batch, split).tolist()
    failed = splits.failures(batch, split)
    assert list(failed) == [row for row, n in enumerate(numbers) if n == -1]
    return [split.names[n] if n >= 0 else None for n in numbers], failed


def test_rows_before_the_first_boundary_are_train():
    texts = [
        b"2013-01-01",
        b"2013-10-31T23:59:59.999",
        b"2013-11-01",
        b" 2013-11-01 00:00 ",
        b"2013-11-30 24:00",
        b"2013-12-01T00:00:00Z",
        b"2014-01-01",
        b"",
        b"2013-13-01",
        b"2013-11-01T00:00+02:00",
        b"\xff",
        None,
    ]
    found, failed = assign(texts, pa.binary(), BY_DATE)
    assert found[:4] == ["train", "train", "eval", "eval"]
    assert found[5:7] == ["test", "test"]
    assert [found[4], *found[7:]] == [None] * 6
    assert "column d: '2013-13-01' is not an ISO 8601 date" in failed[8]
    assert failed[11] == "column d has no value, so the row is of no split"


@given(st.lists(st.datetimes(datetime.datetime(1900, 1, 1)), min_size=2))
def test_normal_texts_compare_as_the_times_do(moments):
    texts = [times.normal(m.isoformat()) for m in moments]
    order = sorted(range(len(moments)), key=lambda i: (texts[i], i))
    assert order == sorted(range(len(moments)), key=lambda i: (moments[i], i))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32()])
def test_numbers(kind):
    split = TimeSplit("d", {"eval": 10, "test": 20})
    found, _ = assign([-5, 9, 10, 19, 20, 2**24, None], kind, split)
    assert found == ["train", "train", "eval", "eval", "test", "test", None]


def test_a_float_boundary_is_met_by_the_same_text():
    split = TimeSplit("d", {"eval": 0.1, "test": 0.2})
    found, _ = assign([np.float32(0.1), np.float32(0.2)], pa.float32(), split)
    assert found == ["eval", "test"]


def test_values_of_a_column():
    split = ColumnSplit("d", {"train": ("a", "b"), "eval": ("ü",), "test": ()})
    values = ["ü".encode(), b"b", b"a", b"A", None]
    found, failed = assign(values, pa.binary(), split)
    assert found == ["eval", "train", "train", None, None]
    assert failed[3].startswith("column d: 'A' is none of the split's values (train: a")
    split = ColumnSplit("d", {"train": ("1",), "eval": ("-2",), "test": ("3",)})
    found, _ = assign([3, -2, 1, 4], pa.int64(), split)
    assert found == ["test", "eval", "train", None]
