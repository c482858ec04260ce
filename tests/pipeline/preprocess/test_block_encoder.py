"""Tests of pipeline/preprocess/block_encoder.py and split_writer.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.compat import tf
from pipeline.preprocess import block_encoder, example_encoder
from pipeline.preprocess.split_writer import SplitWriter
from pipeline.preprocess.splits import divide
from pipeline.types import BLOCK_ROWS, RecordForm, Split

INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
FLOATS = st.floats(width=32)
STRINGS = st.binary(max_size=5) | st.binary(min_size=120, max_size=300)


@st.composite
def batches(draw):
    rows = draw(st.integers(0, 20))
    columns = {}
    for name, cells, kind in (
        ("i", INTS, pa.int64()),
        ("f", FLOATS, pa.float32()),
        ("s", STRINGS, pa.binary()),
    ):
        if draw(st.booleans()):
            cells = cells | st.none()
        values = draw(st.lists(cells, min_size=rows, max_size=rows))
        columns[name] = pa.array(values, kind)
    return pa.RecordBatch.from_pydict(columns)


def _slow_block(batch: pa.RecordBatch) -> bytes:
    """One protobuf object a block, value by value."""
    example = tf.train.Example()
    feature = example.features.feature
    for name, kind, empty in (
        ("i", "int64_list", 0),
        ("f", "float_list", 0.0),
        ("s", "bytes_list", b""),
    ):
        values = batch.column(name).to_pylist()
        getattr(feature[name], kind).value.extend(
            empty if value is None else value for value in values
        )
        missing = [row for row, value in enumerate(values) if value is None]
        if missing:
            feature[f"{name}:missing"].int64_list.value.extend(missing)
    return example.SerializeToString(deterministic=True)


@settings(deadline=None, max_examples=100)
@given(batch=batches(), block_rows=st.integers(1, 9))
def test_equals_blocks_built_the_slow_way(batch, block_rows):
    blocks = block_encoder.encode(batch, block_rows)
    parts = [
        batch.slice(start, block_rows) for start in range(0, batch.num_rows, block_rows)
    ]
    assert [
        tf.train.Example.FromString(b).SerializeToString(deterministic=True)
        for b in blocks
    ] == [_slow_block(part) for part in parts]


def test_slices_of_a_batch_are_encoded_as_the_rows_they_are():
    batch = pa.RecordBatch.from_pydict(
        {"i": pa.array([1, None, 300]), "s": pa.array([b"x", None, b"z"])}
    )
    copied = pa.RecordBatch.from_pydict(
        {"i": pa.array([None, 300]), "s": pa.array([None, b"z"], pa.binary())}
    )
    assert block_encoder.encode(batch.slice(1), 2) == block_encoder.encode(copied, 2)


def test_other_types_are_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1.0], pa.float64())], ["x"])
    with pytest.raises(TypeError, match="column x has type double"):
        block_encoder.encode(batch, 4)


SPLIT = Split({"train": 0.7, "eval": 0.3})


def _written(directory, table, cuts, form) -> dict[str, list[bytes]]:
    writer = SplitWriter(str(directory), "0", 2**20, form)
    for start, stop in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        writer.write(divide(table.slice(start, stop - start), SPLIT))
    shards = writer.close()
    assert sum(shard.rows for shard in shards) == table.num_rows
    return {
        shard.split: list(tf.compat.v1.io.tf_record_iterator(shard.path))
        for shard in shards
    }


@pytest.mark.parametrize("form", RecordForm)
def test_the_batches_rows_come_in_do_not_change_the_records(tmp_path, form):
    table = pa.RecordBatch.from_pydict({"i": pa.array(range(5000))})
    one = _written(tmp_path, table, [], form)
    assert one == _written(tmp_path, table, [1, 30, 2000, 4999], form)
    if form is RecordForm.BLOCKS:
        rows = [
            len(tf.train.Example.FromString(b).features.feature["i"].int64_list.value)
            for b in one["train"]
        ]
        assert set(rows[:-1]) == {BLOCK_ROWS} and 0 < rows[-1] <= BLOCK_ROWS


def test_row_records_are_those_of_each_split_in_order(tmp_path):
    table = pa.RecordBatch.from_pydict({"i": pa.array(range(300))})
    written = _written(tmp_path, table, [100], RecordForm.ROWS)
    numbers = {
        split: [
            tf.train.Example.FromString(r).features.feature["i"].int64_list.value[0]
            for r in rows
        ]
        for split, rows in written.items()
    }
    assert all(n == sorted(n) for n in numbers.values())
    assert sorted(np.concatenate(list(numbers.values()))) == list(range(300))
    assert sorted(sum(written.values(), [])) == sorted(example_encoder.encode(table))
