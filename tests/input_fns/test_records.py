"""Input functions over real record files."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from helpers_records import column, declare, write_records
from hypothesis import example, given, settings
from hypothesis import strategies as st

from input_fns.records import TrainInput, eval_input_fn, train_input_fn
from pipeline.compat import estimator, tf
from pipeline.types import Label, Numeric, Scale

COLUMNS = (column("row", "int"),)
DECLARATION = declare(COLUMNS, [Numeric("row", "row", scale=Scale.NONE)])


def _records(directory, rows: int, shards: int = 1):
    return write_records(directory, [{"row": i} for i in range(rows)], COLUMNS, shards)


def _drawn(records, options: TrainInput, batches: int) -> list[np.ndarray]:
    dataset = train_input_fn(records, DECLARATION, options)()
    return [b["row"] for b in dataset.take(batches).as_numpy_iterator()]


def _epochs(records, rows: int, epochs: int, window: int, seed: int = 1):
    """Row numbers of whole epochs, one epoch an array line."""
    drawn = _drawn(records, TrainInput(1, window, seed), rows * epochs)
    return np.concatenate(drawn).reshape(epochs, rows)


@pytest.mark.parametrize("shards", [1, 3, 7])
@pytest.mark.parametrize("window", [1, 4, 23, 100])
def test_each_epoch_holds_every_row_once(tmp_path, shards, window):
    for epoch in _epochs(_records(tmp_path, 23, shards), 23, 3, window):
        assert sorted(epoch) == list(range(23))


def test_batches_are_full_and_run_across_epochs(tmp_path):
    records = _records(tmp_path, 5, 2)
    drawn = _drawn(records, TrainInput(batch_size=7, shuffle_rows=3, seed=4), 10)
    assert [len(batch) for batch in drawn] == [7] * 10
    epochs = np.concatenate(drawn).reshape(-1, 5)
    assert all(sorted(epoch) == list(range(5)) for epoch in epochs)


def test_single_row(tmp_path):
    drawn = _drawn(_records(tmp_path, 1), TrainInput(3, 8, seed=0, start_step=9), 4)
    assert np.concatenate(drawn).tolist() == [0] * 12


def test_files_without_rows_are_passed_over(tmp_path):
    epochs = _epochs(_records(tmp_path, 3, shards=6), 3, 4, window=2)
    assert all(sorted(epoch) == [0, 1, 2] for epoch in epochs)


def test_no_rows_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no training rows"):
        train_input_fn(_records(tmp_path, 0), DECLARATION, TrainInput(1, 1, 0))


def test_order_differs_between_epochs_and_seeds_only(tmp_path):
    records = _records(tmp_path, 40, 3)
    epochs = _epochs(records, 40, 4, window=100, seed=5)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    np.testing.assert_array_equal(epochs, _epochs(records, 40, 4, 100, seed=5))
    others = [_epochs(records, 40, 1, 100, seed=s) for s in (6, -5, 2**40, 2**63 - 1)]
    assert len({tuple(other[0]) for other in (epochs, *others)}) == 5


def test_windows_of_an_epoch_are_permuted_differently(tmp_path):
    (epoch,) = _epochs(_records(tmp_path, 60), 60, 1, window=20)
    windows = epoch.reshape(3, 20)
    assert [sorted(w % 20) for w in windows] == [list(range(20))] * 3
    assert len({tuple(w % 20) for w in windows}) == 3


def test_files_change_places_between_epochs(tmp_path):
    """So that a window smaller than a file still mixes the data."""
    first_rows = _epochs(_records(tmp_path, 24, shards=12), 24, 8, window=2)[:, 0]
    assert len(set(first_rows // 2)) > 2


@settings(deadline=None, max_examples=10)
@example(rows=1, files=1, batch=1, window=1, start_step=3, seed=0)
@example(rows=6, files=2, batch=6, window=6, start_step=1, seed=0)
@example(rows=6, files=2, batch=3, window=4, start_step=2, seed=0)
@example(rows=6, files=2, batch=2, window=4, start_step=2, seed=0)
@example(rows=5, files=1, batch=13, window=2, start_step=1, seed=0)
@given(
    rows=st.integers(1, 30),
    files=st.integers(1, 6),
    batch=st.integers(1, 40),
    window=st.integers(1, 40),
    start_step=st.integers(0, 40),
    seed=st.integers(-(2**31), 2**31),
)
def test_resuming_gives_the_tail_of_the_uninterrupted_stream(
    rows, files, batch, window, start_step, seed
):
    with tempfile.TemporaryDirectory() as directory:
        records = _records(directory, rows, files)
        whole = _drawn(records, TrainInput(batch, window, seed), start_step + 4)
        tail = _drawn(records, TrainInput(batch, window, seed, start_step), 4)
    np.testing.assert_array_equal(np.stack(tail), np.stack(whole[start_step:]))


def test_resuming_far_into_training_is_immediate(tmp_path):
    """Epochs gone by are not read: the position is computed."""
    records = _records(tmp_path, 10)
    drawn = _drawn(records, TrainInput(5, 10, seed=1, start_step=2 * 10**12), 2)
    assert sorted(np.concatenate(drawn)) == list(range(10))


def _counting_estimator(directory, seen: dict[int, int]) -> estimator.Estimator:
    """An Estimator that learns nothing and notes the rows it was given."""

    def note(rows):
        for row in rows:
            seen[int(row)] = seen.get(int(row), 0) + 1
        return np.float32(0)

    def model_fn(features, labels, mode):
        noted = tf.compat.v1.py_func(note, [features["row"]], tf.float32)
        step = tf.compat.v1.train.get_or_create_global_step()
        with tf.control_dependencies([noted]):
            train_op = tf.compat.v1.assign_add(step, 1)
        return estimator.EstimatorSpec(
            mode,
            loss=noted,
            train_op=train_op,
            eval_metric_ops={"noted": tf.compat.v1.metrics.mean(noted)},
        )

    return estimator.Estimator(model_fn, str(directory))


def test_an_estimator_trains_on_each_row_once_an_epoch(tmp_path):
    records = _records(tmp_path, 12, 3)
    seen: dict[int, int] = {}
    model = _counting_estimator(tmp_path / "model", seen)
    for start_step, max_steps in ((0, 5), (5, 12)):
        options = TrainInput(3, 5, seed=2, start_step=start_step)
        model.train(train_input_fn(records, DECLARATION, options), max_steps=max_steps)
    assert seen == dict.fromkeys(range(12), 3)


@pytest.mark.parametrize("batch_size", [7, 32])
def test_evaluation_sees_each_row_once_in_order(tmp_path, batch_size):
    records = _records(tmp_path, 10, 3)
    input_fn = eval_input_fn(records, DECLARATION, batch_size)
    passes = [
        np.concatenate([b["row"] for b in input_fn().as_numpy_iterator()]).tolist()
        for _ in range(2)
    ]
    assert passes == [list(range(10))] * 2


@pytest.mark.parametrize("batch_size", [7, 32])
def test_an_estimator_evaluates_exactly_the_rows_there_are(tmp_path, batch_size):
    records = _records(tmp_path, 10, 2)
    seen: dict[int, int] = {}
    model = _counting_estimator(tmp_path / "model", seen)
    model.train(
        train_input_fn(records, DECLARATION, TrainInput(10, 10, 0)), max_steps=1
    )
    seen.clear()
    for count in (1, 2):
        model.evaluate(eval_input_fn(records, DECLARATION, batch_size), steps=None)
        assert seen == dict.fromkeys(range(10), count)


# --- labels and weights ---------------------------------------------------------


def _first(tmp_path, rows, columns, label, weight=None):
    declaration = declare(columns, [Numeric("x", "x")], label, weight)
    records = write_records(tmp_path, rows, columns)
    evaluated = eval_input_fn(records, declaration, 10)()
    trained = train_input_fn(records, declaration, TrainInput(2, 1, 0))()
    tf.nest.assert_same_structure(trained.element_spec, evaluated.element_spec)
    return next(evaluated.as_numpy_iterator())


_X = column("x", "float")


def test_string_classes_stay_text(tmp_path):
    rows = [{"x": 1, "y": "ja"}, {"x": 2, "y": "nein"}]
    label = Label("y", ("nein", "ja"))
    features, labels = _first(tmp_path, rows, (_X, column("y", "string")), label)
    assert labels.tolist() == [b"ja", b"nein"]
    assert set(features) == {"x"}


def test_int_classes_become_text(tmp_path):
    rows = [{"x": 1, "y": -1}, {"x": 2, "y": 10**18}]
    label = Label("y", ("-1", str(10**18)))
    _, labels = _first(tmp_path, rows, (_X, column("y", "int")), label)
    assert labels.tolist() == [b"-1", b"1000000000000000000"]


@pytest.mark.parametrize("kind", ["int", "float"])
def test_regression_labels_are_float32(tmp_path, kind):
    rows = [{"x": 1, "y": -3}, {"x": 2, "y": 8}]
    features, labels = _first(tmp_path, rows, (_X, column("y", kind)), Label("y"))
    assert labels.dtype == np.float32
    assert labels.tolist() == [-3.0, 8.0]
    assert set(features) == {"x"}


def test_weight_stays_among_the_features(tmp_path):
    rows = [{"x": 1, "y": 1, "w": 0.5, "other": 1}, {"x": 2, "y": 0, "w": 2}]
    columns = (_X, column("y", "int"), column("w", "float"), column("other", "int"))
    features, _ = _first(tmp_path, rows, columns, Label("y", ("0", "1")), weight="w")
    assert set(features) == {"x", "w"}
    assert features["w"].tolist() == [0.5, 2.0]


def test_columns_that_nothing_uses_need_not_be_in_the_records(tmp_path):
    columns = (_X, column("unused", "int"))
    assert set(_first(tmp_path, [{"x": 1}], columns, None)) == {"x"}


def test_label_outside_the_classes_is_shown(tmp_path):
    """Else the head says only that an id of -1 is out of range."""
    columns = (_X, column("y", "int"))
    rows = [{"x": 0, "y": 1}, {"x": 0, "y": 7}, {"x": 0, "y": 2}]
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"(?s)label y.*not one of the classes.*1, 2.*\b7\b",
    ):
        _first(tmp_path, rows, columns, Label("y", ("1", "2")))


def test_label_outside_the_classes_stops_training(tmp_path):
    columns = (column("row", "int"), column("y", "string"))
    declaration = declare(columns, [Numeric("row", "row")], Label("y", ("a", "b")))
    records = write_records(
        tmp_path, [{"row": i, "y": "ab"[i % 2]} for i in range(9)], columns
    )
    bad = write_records(tmp_path, [{"row": 9, "y": "maybe\xe9"}], columns, shards=2)
    records = type(records)((*records.files, *bad.files), 10)
    model = _counting_estimator(tmp_path / "model", {})
    with pytest.raises(tf.errors.InvalidArgumentError, match="label y.*maybe"):
        model.train(
            train_input_fn(records, declaration, TrainInput(4, 4, 0)), max_steps=5
        )
