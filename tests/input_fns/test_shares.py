"""Workers that share the rows: each row is read by one of them (trial DIST-4)."""

from __future__ import annotations

import collections
import tempfile

import numpy as np
import pytest
from helpers_records import column, declare, write_blocks, write_records
from hypothesis import example, given, settings
from hypothesis import strategies as st

from input_fns import arrays
from input_fns.options import TrainInput
from input_fns.order import train_input_fn
from input_fns.records import Records
from input_fns.shares import Shard, share_of
from pipeline.compat import tf
from pipeline.types import Numeric, Scale, UserError

COLUMNS = (column("id", "int"),)
DECLARATION = declare(COLUMNS, [Numeric("id", "id", scale=Scale.NONE)])
FORMS = ("rows", "blocks", "cached rows", "cached blocks", "arrays")


def _source(directory, form: str, sizes, block_rows: int = 3):
    numbers = iter(range(sum(sizes)))
    parts = [[{"id": next(numbers)} for _ in range(size)] for size in sizes]
    if form == "arrays":
        ids = np.arange(sum(sizes), dtype=np.int64)
        return arrays.from_arrays(sizes, lambda columns: {"id": ids})
    if form.endswith("blocks"):
        # Whole blocks of the usual size keep the order of the cache.
        size = 512 if form.startswith("cached") else block_rows
        records = write_blocks(directory, parts, COLUMNS, size)
    else:
        files = []
        for number, rows in enumerate(parts):
            tf.io.gfile.makedirs(f"{directory}/{number}")
            files += write_records(f"{directory}/{number}", rows, COLUMNS).files
        records = Records(tuple(files), sum(sizes), file_rows=tuple(sizes))
    return arrays.cached(records) if form.startswith("cached") else records


def _ids(source, shard: Shard, seed: int, epochs: int | None, batches=None):
    options = TrainInput(4, 5, seed, epochs=epochs, shard=shard)
    dataset = train_input_fn(source, DECLARATION, options)()
    if batches is not None:
        dataset = dataset.take(batches)
    return [int(i) for b in dataset.as_numpy_iterator() for i in b["id"]]


@settings(deadline=None, max_examples=10)
@example(form="rows", sizes=[20], workers=2, seed=1)
@example(form="blocks", sizes=[20], workers=2, seed=1)
@example(form="blocks", sizes=[7, 13], workers=2, seed=1)
@example(form="cached blocks", sizes=[20, 0, 1], workers=3, seed=1)
@example(form="arrays", sizes=[20], workers=3, seed=1)
@given(
    form=st.sampled_from(FORMS),
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    workers=st.integers(1, 4),
    seed=st.integers(0, 2**31),
)
def test_DIST_4_each_row_once_an_epoch_over_all_workers(form, sizes, workers, seed):
    if sum(sizes) < workers:
        sizes = [*sizes, workers]
    with tempfile.TemporaryDirectory() as directory:
        source = _source(directory, form, sizes)
        shards = [Shard(workers, index) for index in range(workers)]
        once = [_ids(source, shard, seed, 1) for shard in shards]
        twice = [_ids(source, shard, seed, 2) for shard in shards]
    everything = set(range(sum(sizes)))
    assert sorted(i for ids in once for i in ids) == sorted(everything)
    for one, two in zip(once, twice, strict=True):
        counts = collections.Counter(two)
        assert set(counts) == set(one) and set(counts.values()) == {2}


@pytest.mark.parametrize("form", ["rows", "blocks"])
@pytest.mark.parametrize("sizes", [[20], [5, 7, 8]])
def test_DIST_4_shares_depend_on_neither_seed_nor_listing(tmp_path, form, sizes):
    source = _source(tmp_path, form, sizes)
    backwards = Records(
        source.files[::-1], source.rows, source.form, source.file_rows[::-1]
    )
    shard = Shard(2, 1)
    shares = [
        set(_ids(each, shard, seed, 1))
        for each in (source, backwards)
        for seed in (1, 2, 3)
    ]
    assert all(share == shares[0] for share in shares)
    # Shuffled all the same.
    assert _ids(source, shard, 1, 1) != _ids(source, shard, 2, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [[23], [5, 7, 8, 9]])
def test_a_workers_run_is_resumed_exactly(tmp_path, form, sizes):
    source = _source(tmp_path, form, sizes)
    shard = Shard(2, 1)
    whole = _ids(source, shard, 3, None, batches=12)
    for start_step in (1, 4, 7):
        options = TrainInput(4, 5, 3, start_step=start_step, shard=shard)
        dataset = train_input_fn(source, DECLARATION, options)().take(5)
        tail = [int(i) for b in dataset.as_numpy_iterator() for i in b["id"]]
        assert tail == whole[4 * start_step :][: len(tail)]
        assert len(tail) == 20


def test_whole_files_where_there_are_enough_else_rows():
    by_file = share_of(["b", "a", "c"], [5, 6, 7], Shard(2, 0))
    assert (by_file.parts, by_file.stride, by_file.rows) == ((1, 2), 1, 13)
    by_row = share_of(["b", "a"], [5, 6], Shard(3, 0))
    assert (by_row.parts, by_row.stride, by_row.rows) == ((0, 1), 3, 4)
    # Two files, one of them empty, are not enough for two workers.
    assert share_of(["a", "b"], [9, 0], Shard(2, 1)).rows == 4


def test_fewer_rows_than_workers_are_refused():
    with pytest.raises(UserError, match="2 training rows cannot be divided among 3"):
        share_of(["a"], [2], Shard(3, 0))


def test_no_such_worker():
    with pytest.raises(ValueError, match="no worker 2 among 2"):
        Shard(2, 2)
