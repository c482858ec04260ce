"""Rows in memory: the same rows, in the same order, as from record files."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from helpers_records import column, declare, write_blocks, write_records
from hypothesis import given, settings
from hypothesis import strategies as st

from input_fns import arrays
from input_fns.options import Reading, TrainInput
from input_fns.order import eval_input_fn, train_input_fn
from input_fns.records import serialized_rows
from pipeline.compat import tf
from pipeline.types import Label, Numeric

COLUMNS = (
    column("i", "int", default=-7),
    column("f", "float", default=0.25),
    column("s", "string", default="nothing"),
    column("y", "int"),
)
DECLARATION = declare(
    COLUMNS, [Numeric("i", "i"), Numeric("f", "f")], Label("y", ("0", "1"))
)
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(width=32, allow_nan=False),
        "s": st.none() | st.text(max_size=3),
        "y": st.integers(0, 1),
    }
)
KINDS = {"i": np.int64, "f": np.float32, "s": object, "y": np.int64}


def _array(rows, each):
    values = [row[each.name] for row in rows]
    filled = [each.default if v is None else v for v in values]
    filled = [v.encode() if isinstance(v, str) else v for v in filled]
    mask = [v is None for v in values]
    return np.ma.MaskedArray(np.array(filled, KINDS[each.name]), mask)


def _table(parts) -> arrays.Table:
    rows = [row for part in parts for row in part]
    columns = {each.name: _array(rows, each) for each in COLUMNS}
    return arrays.from_arrays([len(part) for part in parts], lambda _: columns)


def _batches(dataset, count=None):
    dataset = dataset if count is None else dataset.take(count)
    return [tf.nest.flatten(batch) for batch in dataset.as_numpy_iterator()]


def _assert_equal(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@settings(deadline=None, max_examples=10)
@given(
    parts=st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=6),
    batch=st.integers(1, 7),
    window=st.integers(1, 20),
    start_step=st.integers(0, 9),
    at_once=st.integers(1, 5),
)
def test_in_memory_the_order_is_that_of_record_files(
    parts, batch, window, start_step, at_once
):
    if not any(parts):
        parts = [*parts, [{"i": 1, "f": 0.5, "s": "x", "y": 1}]]
    with tempfile.TemporaryDirectory() as directory:
        blocks = write_blocks(directory, parts, COLUMNS)
        options = TrainInput(
            batch, window, 5, start_step, reading=Reading(files_at_once=at_once)
        )
        sources = (blocks, arrays.cached(blocks), _table(parts))
        trained = [
            _batches(train_input_fn(source, DECLARATION, options)(), 5)
            for source in sources
        ]
        evaluated = [
            _batches(eval_input_fn(source, DECLARATION, batch)()) for source in sources
        ]
        rows = [list(serialized_rows(source, COLUMNS)) for source in sources]
    for other in (1, 2):
        _assert_equal(trained[other], trained[0])
        _assert_equal(evaluated[other], evaluated[0])
        parsed = [[tf.train.Example.FromString(r) for r in rows[n]] for n in (0, other)]
        assert parsed[0] == parsed[1]


@pytest.mark.parametrize("window", [1, 70, 1000])
def test_a_cache_keeps_the_order_of_single_rows(tmp_path, window):
    rows = [{"i": i, "f": 0.5, "s": "x", "y": 0} for i in range(700)]
    records = write_records(tmp_path, rows, COLUMNS, shards=3)
    options = TrainInput(64, window, seed=2, start_step=5)
    one, other = (
        _batches(train_input_fn(source, DECLARATION, options)(), 20)
        for source in (records, arrays.cached(records))
    )
    _assert_equal(one, other)


def test_large_parts_are_read_side_by_side_in_the_order_of_blocks(tmp_path):
    parts = [
        [{"i": n * 10_000 + i, "f": 0.5, "s": "x", "y": 0} for i in range(1300)]
        for n in range(6)
    ]
    blocks = write_blocks(tmp_path, parts, COLUMNS)
    options = TrainInput(100, 300, seed=2, reading=Reading(files_at_once=3))
    one, other = (
        _batches(train_input_fn(source, DECLARATION, options)(), 90)
        for source in (blocks, _table(parts))
    )
    _assert_equal(one, other)


def test_arrays_are_loaded_once_for_all_epochs():
    loads = []

    def load(columns):
        loads.append(columns)
        return {
            "i": np.arange(4),
            "f": np.zeros(4, np.float32),
            "y": np.zeros(4, np.int64),
        }

    source = arrays.from_arrays([4], load)
    batches = _batches(train_input_fn(source, DECLARATION, TrainInput(3, 4, 1))(), 20)
    assert len(batches) == 20 and len(loads) == 1


@pytest.mark.parametrize("drop, sizes", [(False, [4, 4, 2]), (True, [4, 4])])
def test_the_rest_is_kept_unless_it_is_to_be_dropped(drop, sizes):
    rows = [{"i": i, "f": 0.5, "s": "x", "y": 0} for i in range(10)]
    evaluated = eval_input_fn(_table([rows]), DECLARATION, 4, drop_remainder=drop)
    assert [len(b[-1]) for b in _batches(evaluated())] == sizes
    options = TrainInput(4, 10, 1, epochs=1, drop_remainder=drop)
    trained = train_input_fn(_table([rows]), DECLARATION, options)
    assert [len(b[-1]) for b in _batches(trained())] == sizes


@pytest.mark.parametrize("start_step, batches", [(0, 5), (3, 2), (5, 0), (99, 0)])
def test_a_run_of_some_epochs_ends_wherever_it_is_resumed(start_step, batches):
    rows = [{"i": i, "f": 0.5, "s": "x", "y": 0} for i in range(10)]
    options = TrainInput(4, 10, 1, start_step, epochs=2)
    drawn = _batches(train_input_fn(_table([rows]), DECLARATION, options)())
    assert len(drawn) == batches


@pytest.mark.parametrize(
    "reading",
    [
        Reading(threads=1),
        Reading(prefetch_batches=0),
        Reading(deterministic=False),
        Reading(files_at_once=1),
    ],
)
def test_each_row_once_an_epoch_however_it_is_read(tmp_path, reading):
    parts = [
        [{"i": n * 10 + i, "f": 0.0, "s": "", "y": 0} for i in range(9)]
        for n in range(3)
    ]
    blocks = write_blocks(tmp_path, parts, COLUMNS, 2)
    options = TrainInput(9, 8, 1, epochs=2, reading=reading)
    drawn = _batches(train_input_fn(blocks, DECLARATION, options)())
    numbers = np.sort(np.concatenate([batch[1] for batch in drawn]))
    wanted = sorted(2 * [row["i"] for part in parts for row in part])
    np.testing.assert_array_equal(numbers, wanted)
