"""Records of many rows each: the same rows as from records of one row each."""

from __future__ import annotations

import tempfile

import numpy as np
import pyarrow as pa
import pytest
from helpers_records import column, declare, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from input_fns import blocks, parsing
from input_fns.records import (
    Records,
    TrainInput,
    eval_input_fn,
    serialized_rows,
    train_input_fn,
)
from pipeline.compat import tf
from pipeline.preprocess import block_encoder
from pipeline.types import ColumnType, Label, Numeric, RecordForm, Scale

COLUMNS = (
    column("i", "int", default=-7),
    column("f", "float", default=0.25),
    column("s", "string", default="nothing"),
    column("r", "int"),
)
CELLS = {
    "i": st.none() | st.integers(-(2**63), 2**63 - 1),
    "f": st.none() | st.floats(width=32, allow_nan=False),
    "s": st.none() | st.text(max_size=3),
    "r": st.integers(-5, 5),
}
_ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}


def _as_blocks(rows, columns, block_rows: int) -> list[bytes]:
    arrays = []
    for each in columns:
        values = [row.get(each.name) for row in rows]
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        arrays.append(pa.array(encoded, _ARROW[each.type]))
    batch = pa.record_batch(arrays, [c.name for c in columns])
    return block_encoder.encode(batch, block_rows)


def _write(directory, rows, columns, shards: int, block_rows: int) -> Records:
    files = []
    for shard in range(shards):
        begin, end = (len(rows) * i // shards for i in (shard, shard + 1))
        path = f"{directory}/{shard}.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for block in _as_blocks(rows[begin:end], columns, block_rows):
                writer.write(block)
        files.append(path)
    return Records(tuple(files), len(rows), RecordForm.BLOCKS)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=12),
    block_rows=st.integers(1, 5),
)
def test_parse_gives_what_rows_give(rows, block_rows):
    wanted = parsing.parse(tf.constant(examples(rows, COLUMNS)), COLUMNS)
    serialized = _as_blocks(rows, COLUMNS, block_rows)
    found = blocks.parse(tf.constant(serialized), COLUMNS)
    assert list(found) == [c.name for c in COLUMNS]
    for name, value in found.items():
        assert value.dtype == wanted[name].dtype
        np.testing.assert_array_equal(value.numpy(), wanted[name].numpy())


@settings(deadline=None, max_examples=20)
@given(rows=st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=8))
def test_rows_of_blocks_are_the_rows_that_were_written(rows):
    with tempfile.TemporaryDirectory() as directory:
        records = _write(directory, rows, COLUMNS, 2, 3)
        found = list(serialized_rows(records, COLUMNS))

    def parsed(serialized):
        return [tf.train.Example.FromString(one) for one in serialized]

    assert parsed(found) == parsed(examples(rows, COLUMNS))


ROW = (column("row", "int"),)
ROW_DECLARATION = declare(ROW, [Numeric("row", "row", scale=Scale.NONE)])


def _numbered(directory, rows, shards, block_rows) -> Records:
    return _write(directory, [{"row": i} for i in range(rows)], ROW, shards, block_rows)


def _drawn(records, options: TrainInput, batches: int) -> list[np.ndarray]:
    dataset = train_input_fn(records, ROW_DECLARATION, options)()
    return [b["row"] for b in dataset.take(batches).as_numpy_iterator()]


@settings(deadline=None, max_examples=15)
@given(
    rows=st.integers(1, 30),
    shards=st.integers(1, 4),
    block_rows=st.integers(1, 9),
    batch=st.integers(1, 40),
    window=st.integers(1, 40),
    start_step=st.integers(0, 40),
    seed=st.integers(-(2**31), 2**31),
)
def test_any_resumed_stream_is_the_tail_and_epochs_are_whole(
    rows, shards, block_rows, batch, window, start_step, seed
):
    with tempfile.TemporaryDirectory() as directory:
        records = _numbered(directory, rows, shards, block_rows)
        whole = _drawn(records, TrainInput(batch, window, seed), start_step + 4)
        tail = _drawn(records, TrainInput(batch, window, seed, start_step), 4)
    np.testing.assert_array_equal(np.stack(tail), np.stack(whole[start_step:]))
    drawn = np.concatenate(whole)
    for epoch in range(len(drawn) // rows):
        numbers = drawn[epoch * rows : (epoch + 1) * rows]
        assert sorted(numbers) == list(range(rows))


def test_rows_are_shuffled_across_blocks_and_not_whole_blocks(tmp_path):
    records = _numbered(tmp_path, 4000, 2, 512)
    (rows,) = _drawn(records, TrainInput(4000, 4000, 3), 1)
    assert np.mean(np.abs(np.diff(rows)) == 1) < 0.01
    (other,) = _drawn(records, TrainInput(4000, 4000, 4), 1)
    assert rows.tolist() != other.tolist()


@pytest.mark.parametrize("batch_size", [1, 7, 512, 1000])
def test_evaluation_sees_each_row_once_in_order(tmp_path, batch_size):
    records = _numbered(tmp_path, 1100, 3, 512)
    dataset = eval_input_fn(records, ROW_DECLARATION, batch_size)()
    batches = [b["row"] for b in dataset.as_numpy_iterator()]
    assert np.concatenate(batches).tolist() == list(range(1100))
    assert {len(b) for b in batches[:-1]} <= {batch_size}


def test_labels_and_defaults_reach_the_model(tmp_path):
    columns = (column("x", "float", default=0.5), column("y", "string"))
    declaration = declare(columns, [Numeric("x", "x")], Label("y", ("no", "yes")))
    rows = [{"x": None, "y": "yes"}, {"x": 2.0, "y": "no"}]
    records = _write(tmp_path, rows, columns, 1, 512)
    features, labels = next(
        eval_input_fn(records, declaration, 5)().as_numpy_iterator()
    )
    assert features["x"].tolist() == [0.5, 2.0]
    assert labels.tolist() == [b"yes", b"no"]
    trained = train_input_fn(records, declaration, TrainInput(2, 2, 0))()
    _, labels = next(trained.as_numpy_iterator())
    assert sorted(labels.tolist()) == [b"no", b"yes"]
