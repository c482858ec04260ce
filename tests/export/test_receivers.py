"""What a request may hold, and what it is told when it is wrong."""

from __future__ import annotations

import math
from typing import Any

import helpers_jobs
import numpy as np
import pytest

from export import receivers, versions
from pipeline.compat import tf
from pipeline.types import Column, ColumnType

COLOUR = helpers_jobs.COLOUR
NAN = math.nan
_FULL = {
    COLOUR: b"rot",
    "age": 35,
    "score": 0.75,
    "city": "Köln".encode(),
    "kind": 2,
    "tag": b"t1",
}
_DEFAULTS = {COLOUR: b"keine", "score": 0.5, "kind": 1, "tag": b"none"}
_DTYPES = {
    COLOUR: tf.string,
    "age": tf.int64,
    "score": tf.float32,
    "city": tf.string,
    "kind": tf.int64,
    "tag": tf.string,
}


@pytest.fixture(scope="module", params=helpers_jobs.MODELS)
def signatures(request, small_job):
    export_dir = str(small_job.export_dir(request.param))
    return tf.saved_model.load(versions.find(export_dir, None)).signatures


def _feature(name: str, value: Any) -> tf.train.Feature:
    """Returns a feature of the values' type; of the column's where there are none."""
    feature = tf.train.Feature()
    values = value if isinstance(value, list) else [value]
    lists = {
        bytes: feature.bytes_list,
        int: feature.int64_list,
        float: feature.float_list,
    }
    kind = type(values[0]) if values else type(_FULL[name])
    lists[kind].SetInParent()
    lists[kind].value.extend(values)
    return feature


def _example(row: dict[str, Any]) -> bytes:
    features = {name: _feature(name, value) for name, value in row.items()}
    return tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString()


def _without(name: str) -> dict[str, Any]:
    return {n: v for n, v in _FULL.items() if n != name}


def _ask(signatures, *rows: dict[str, Any]) -> np.ndarray:
    examples = tf.constant([_example(row) for row in rows])
    return signatures["serving_default"](examples=examples)["logits"].numpy()


def _ask_raw(signatures, **changes) -> np.ndarray:
    values = {name: [value] for name, value in _FULL.items()} | changes
    tensors = {n: tf.constant(v, _DTYPES[n]) for n, v in values.items()}
    return signatures["predict"](**tensors)["logits"].numpy()


@pytest.mark.parametrize("name", _DEFAULTS)
def test_an_absent_value_is_the_default(signatures, name):
    expected = _ask(signatures, {**_FULL, name: _DEFAULTS[name]})
    np.testing.assert_allclose(
        _ask(signatures, _without(name)), expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("name", ["score", "kind"])
def test_the_default_matters(signatures, name):
    expected = _ask(signatures, {**_FULL, name: _DEFAULTS[name]})
    assert abs(_ask(signatures, _FULL) - expected).max() > 1e-4


@pytest.mark.parametrize(
    ("name", "nothing"),
    [
        ("score", NAN),
        (COLOUR, b""),
        (COLOUR, b"  "),
        (COLOUR, b" ?\t"),
        ("tag", b""),
        *((name, []) for name in _DEFAULTS),
    ],
)
def test_a_value_that_says_missing_is_the_default(signatures, name, nothing):
    expected = _ask(signatures, {**_FULL, name: _DEFAULTS[name]})
    found = _ask(signatures, {**_FULL, name: nothing})
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("score", NAN), (COLOUR, b""), (COLOUR, b" ? "), ("tag", b" ")],
)
def test_a_raw_value_that_says_missing_is_the_default(signatures, name, nothing):
    expected = _ask(signatures, {**_FULL, name: _DEFAULTS[name]})
    found = _ask_raw(signatures, **{name: [nothing]})
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_both_ways_in_give_the_same(signatures):
    np.testing.assert_allclose(
        _ask(signatures, _FULL), _ask_raw(signatures), atol=1e-6, rtol=0
    )


def test_further_features_of_an_example_are_ignored(signatures):
    found = _ask(signatures, {**_FULL, "bought": b"ja", "another": [1, 2, 3]})
    np.testing.assert_array_equal(found, _ask(signatures, _FULL))


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("kind", -1, 2**62), ("kind", 7, 10), (COLOUR, b"lila", b"\xff\x00")],
)
def test_unknown_values_all_have_the_same_meaning(signatures, name, one, other):
    """With a single bucket for them there is but one "unknown"."""
    found = _ask(signatures, {**_FULL, name: one}, {**_FULL, name: other})
    np.testing.assert_allclose(found[0], found[1], atol=1e-6, rtol=0)
    assert np.isfinite(found).all()


def _error(ask, *arguments, **keywords) -> str:
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError)) as caught:
        ask(*arguments, **keywords)
    return str(caught.value)


@pytest.mark.parametrize("name", ["age", "city"])
def test_an_absent_required_value_is_named(signatures, name):
    assert name in _error(_ask, signatures, _without(name))


def test_a_marker_in_a_required_feature_is_named(signatures):
    message = _error(_ask, signatures, {**_FULL, "city": b" "})
    assert "feature city is required and has no value" in message


@pytest.mark.parametrize(
    ("name", "value"), [("score", 1), ("age", 1.5), ("city", 3), ("tag", 0.5)]
)
def test_a_value_of_another_type_is_named(signatures, name, value):
    message = _error(_ask, signatures, {**_FULL, name: value})
    assert f"Key: {name}," in message
    if name == "score":
        assert "Data type: int64 but expected type: float" in message


@pytest.mark.parametrize(
    ("name", "values"),
    [("score", [0.5, 1.5]), ("age", [1, 2]), ("city", [b"a", b"b"]), ("kind", [1, 2])],
)
def test_two_values_are_named(signatures, name, values):
    message = _error(_ask, signatures, {**_FULL, name: values})
    assert f"Key: {name}," in message or f"feature {name} has more than" in message


def test_a_broken_example_is_refused(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="parse"):
        signatures["serving_default"](examples=tf.constant([b"no Example"]))


def test_a_bad_request_does_not_disturb_the_next(signatures):
    before = _ask(signatures, _FULL)
    _error(_ask, signatures, {**_FULL, "score": [1.0, 2.0]})
    np.testing.assert_array_equal(_ask(signatures, _FULL), before)


def test_raw_required_without_a_value_is_named(signatures):
    message = _error(_ask_raw, signatures, city=[b""])
    assert "feature city is required and has no value" in message


def test_raw_column_left_out_is_named(signatures):
    tensors = {n: tf.constant([v], _DTYPES[n]) for n, v in _without("age").items()}
    with pytest.raises(TypeError, match="age"):
        signatures["predict"](**tensors)


@pytest.mark.parametrize("values", [[], [1, 2], [1, 2, 3]])
def test_raw_columns_of_different_lengths_are_named(signatures, values):
    message = _error(_ask_raw, signatures, age=values)
    assert "[age] [has]" in message and f"[has] [{len(values)}]" in message


@pytest.mark.parametrize("values", [[[0.5]], [[0.5, 0.5]], 0.5])
def test_raw_column_of_another_rank_is_refused(signatures, values):
    _error(_ask_raw, signatures, score=values)


def test_names_of_columns_become_names_of_tensors():
    odd = ["größe (cm)", "a/b", "1st", "a b", "a_b"]
    columns = [Column(name, ColumnType.INT) for name in odd]
    with tf.Graph().as_default():
        receiver = receivers.receiver(columns)
    assert sorted(receiver.columns) == sorted(odd)
    names = {name: tensor.op.name for name, tensor in receiver.columns.items()}
    assert names["größe (cm)"] == "raw_gr__e__cm_"
    assert names["1st"] == "raw_1st"
    assert len(set(names.values())) == len(odd)


def test_an_empty_batch_becomes_one_row_for_the_model_and_none_in_the_answer():
    columns = [Column("x", ColumnType.FLOAT), Column("s", ColumnType.STRING)]
    with tf.Graph().as_default():
        receiver = receivers.receiver(columns)
        found = [receiver.features["x"], receiver.features["s"]]
        answer = receiver.answer(receiver.features["x"] * 2)
        with tf.compat.v1.Session() as session:

            def run(x, s):
                feed = {receiver.columns["x"]: x, receiver.columns["s"]: s}
                return session.run([*found, answer], feed)

            x, s, empty = run([], [])
            assert (x.tolist(), s.tolist(), empty.tolist()) == ([0.0], [b""], [])
            x, s, double = run([1.5, 2.0], ["a", "b"])
    assert (x.tolist(), s.tolist()) == ([1.5, 2.0], [b"a", b"b"])
    assert double.tolist() == [3.0, 4.0]
