"""Tests of pipeline/preprocess/splits.py."""

from __future__ import annotations

import collections
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess import splits
from pipeline.types import Split

SPLIT = Split({"train": 0.8, "eval": 0.1, "test": 0.1})
SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float32()), ("s", pa.binary())])

ROW = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(width=32, allow_nan=False),
    st.none() | st.binary(max_size=6),
)


def batch_of(rows, schema=SCHEMA):
    columns = list(zip(*rows, strict=True)) or [[] for _ in schema]
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@given(st.lists(ROW, max_size=30), st.randoms())
@settings(deadline=None, max_examples=60)
def test_a_row_lands_in_the_same_split_in_any_batch_and_order(rows, random):
    together = splits.assign(batch_of(rows), SPLIT).tolist()
    alone = [splits.assign(batch_of([row]), SPLIT)[0] for row in rows]
    order = list(range(len(rows)))
    random.shuffle(order)
    mixed = splits.assign(batch_of([rows[i] for i in order]), SPLIT).tolist()
    assert together == alone
    assert mixed == [together[i] for i in order]


@given(st.lists(ROW, max_size=40))
@settings(deadline=None, max_examples=60)
def test_different_rows_have_different_key_bytes(rows):
    keys = splits.key_bytes(batch_of(rows))
    assert len(set(keys)) == len(set(rows))


def test_strings_do_not_run_into_each_other_and_null_is_not_empty():
    schema = pa.schema([("a", pa.binary()), ("b", pa.binary())])
    rows = [
        (b"ab", b"c"),
        (b"a", b"bc"),
        (b"abc", b""),
        (b"abc", None),
        (b"", b"abc"),
        (None, b"abc"),
    ]
    assert len(set(splits.key_bytes(batch_of(rows, schema)))) == len(rows)


def test_equal_floats_of_different_bits_are_one_key():
    values = np.array([0x0, 0x80000000, 0x7FC00000, 0xFFC00001], np.uint32)
    batch = pa.RecordBatch.from_arrays([pa.array(values.view(np.float32))], ["f"])
    zero, minus_zero, nan, other_nan = splits.key_bytes(batch)
    assert zero == minus_zero and nan == other_nan and zero != nan


def test_only_the_key_columns_count():
    rows = [(7, float(i), b"x%d" % i) for i in range(100)]
    split = Split({"a": 0.5, "b": 0.5}, key=("i",))
    assert len(set(splits.assign(batch_of(rows), split))) == 1
    other = batch_of([(7, None, b"?")]).select(["s", "i"])
    assert splits.assign(other, split)[0] == splits.assign(batch_of(rows), split)[0]


def test_shares_and_salts():
    rows = [(i, None, b"") for i in range(40_000)]
    first = splits.assign(batch_of(rows), SPLIT)
    shares = np.bincount(first, minlength=3) / len(rows)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.006)
    salted = splits.assign(
        batch_of(rows), Split(SPLIT.fractions, salt="another, longer than 16 bytes")
    )
    agreement = np.mean(first == salted)
    assert abs(agreement - (0.64 + 0.01 + 0.01)) < 0.01


def test_the_division_is_pinned_for_all_time():
    """A change here would move rows of every user's old data between splits."""
    rows = [(i, i / 4 if i % 3 else None, b"row %d" % i) for i in range(2_000)]
    split = Split({"a": 0.5, "b": 0.3, "c": 0.2}, salt="pinned")
    indexes = splits.assign(batch_of(rows), split).tolist()
    assert indexes[:16] == [0, 0, 0, 2, 0, 2, 0, 0, 1, 1, 0, 2, 2, 1, 0, 2]
    assert collections.Counter(indexes) == {0: 1014, 1: 568, 2: 418}


@given(st.lists(ROW, min_size=1, max_size=10))
@settings(deadline=None, max_examples=40)
def test_the_encoding_is_the_documented_one(rows):
    def slow(i, f, s):
        fixed = b"\0" * 9 if i is None else b"\1" + struct.pack("<q", i)
        fixed += b"\0" * 5 if f is None else b"\1" + struct.pack("<f", f + 0.0)
        fixed += b"\0" * 9 if s is None else b"\1" + struct.pack("<q", len(s))
        return fixed + (s or b"")

    assert splits.key_bytes(batch_of(rows)) == [slow(*row) for row in rows]


def test_a_slice_and_an_empty_batch():
    rows = [(i, float(i), b"%d" % i) for i in range(10)]
    whole = splits.assign(batch_of(rows), SPLIT)
    np.testing.assert_array_equal(
        splits.assign(batch_of(rows).slice(3, 4), SPLIT), whole[3:7]
    )
    assert splits.assign(batch_of([]), SPLIT).shape == (0,)


def test_one_split_takes_all():
    rows = [(i, None, None) for i in range(100)]
    assert not splits.assign(batch_of(rows), Split({"train": 1.0})).any()


def test_other_types_and_unknown_columns_are_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([True])], ["flag"])
    with pytest.raises(TypeError, match="bool"):
        splits.assign(batch, SPLIT)
    with pytest.raises(KeyError, match="nothing"):
        splits.assign(batch, Split({"train": 1.0}, key=("nothing",)))
