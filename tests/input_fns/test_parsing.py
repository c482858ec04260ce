"""Parsing of tf.Examples and the rule for missing values, as serving applies them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers_records import column, examples

from input_fns import parsing
from pipeline.compat import tf

COLUMNS = (
    column("n", "int", default=-7),
    column("x", "float", default=2),
    column("s", "string", missing=("", "?", "not given"), default="weiß nicht"),
)
REQUIRED = (
    column("n", "int"),
    column("x", "float"),
    column("s", "string", missing=("", "?")),
)


_PARSERS = [parsing.parse, parsing.parse_request]
_FULL_ROW = {"n": 3, "x": 4.0, "s": "a"}


def _parse(rows, columns) -> dict[str, list]:
    """Parses in both ways, which must agree."""
    serialized = tf.constant(examples(rows, columns), tf.string)
    first, second = (
        {
            name: value.numpy().tolist()
            for name, value in parse(serialized, columns).items()
        }
        for parse in _PARSERS
    )
    assert first == second
    return first


def _clean(values, *columns) -> list:
    """Applies the rule to one column in a graph, as a receiver does."""

    @tf.function
    def clean(features):
        return parsing.apply_missing_rule(features, columns)

    return clean(values)[columns[0].name].numpy().tolist()


def _example(**features: tf.train.Feature) -> bytes:
    return tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString()


def _floats(*values) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _ints(*values) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _texts(*values) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def test_values_come_back_as_they_were_written():
    rows = [
        {"n": -(2**63), "x": math.inf, "s": b"\xff\x00"},
        {"n": 2**63 - 1, "x": 1e-45, "s": "日本"},
    ]
    parsed = _parse(rows, REQUIRED)
    assert parsed["n"] == [-(2**63), 2**63 - 1]
    np.testing.assert_array_equal(parsed["x"], np.float32([math.inf, 1e-45]))
    assert parsed["s"] == [b"\xff\x00", "日本".encode()]


@pytest.mark.parametrize("parse", _PARSERS)
def test_types_and_shapes(parse):
    parsed = parse(tf.constant(examples([{}, {}], COLUMNS)), COLUMNS)
    assert {k: (v.dtype, v.shape) for k, v in parsed.items()} == {
        "n": (tf.int64, [2]),
        "x": (tf.float32, [2]),
        "s": (tf.string, [2]),
    }


def test_absent_value_becomes_the_default():
    rows = [{"n": 1}, {"x": 0.0}, {"s": "a"}]
    assert _parse(rows, COLUMNS) == {
        "n": [1, -7, -7],
        "x": [2.0, 0.0, 2.0],
        "s": ["weiß nicht".encode(), "weiß nicht".encode(), b"a"],
    }


def test_no_values_in_a_request_are_an_absent_value():
    empty = _example(n=_ints(), x=_floats(), s=_texts(), z=tf.train.Feature())
    full = _example(n=_ints(3), x=_floats(4), s=_texts(b"a"))
    for requests, rows in (([empty], [{}]), ([full, empty], [_FULL_ROW, {}])):
        parsed = parsing.parse_request(tf.constant(requests), COLUMNS)
        found = {name: value.numpy().tolist() for name, value in parsed.items()}
        assert found == _parse(rows, COLUMNS)


def test_no_values_for_a_required_feature_are_an_error_that_names_it():
    request = _example(n=_ints(1), x=_floats(), s=_texts(b"a"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\bx\b"):
        parsing.parse_request(tf.constant([request]), REQUIRED)


@pytest.mark.parametrize("default", [0, 0.0])
def test_default_of_zero_is_a_default(default):
    columns = (column("x", "float", default=default),)
    assert _parse([{}], columns) == {"x": [0.0]}
    assert _clean({"x": tf.constant([math.nan])}, *columns) == [0.0]


@pytest.mark.parametrize("parse", _PARSERS)
@pytest.mark.parametrize("columns", [COLUMNS, REQUIRED])
def test_no_rows(parse, columns):
    parsed = parse(tf.constant([], tf.string), columns)
    cleaned = parsing.apply_missing_rule(parsed, columns)
    assert {k: v.shape for k, v in cleaned.items()} == {"n": [0], "x": [0], "s": [0]}


def test_further_features_of_an_example_are_ignored():
    example = _example(n=_ints(1), x=_floats(1), s=_texts(b"a"), more=_texts(b"z"))
    parsed = parsing.parse(tf.constant([example]), REQUIRED)
    assert set(parsed) == {"n", "x", "s"}


@pytest.mark.parametrize("absent", ["n", "x", "s"])
def test_absent_required_value_is_an_error_that_names_it(absent):
    row = {"n": 1, "x": 1.0, "s": "a"}
    del row[absent]
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"\b{absent}\b"):
        _parse([{"n": 1, "x": 1.0, "s": "a"}, row], REQUIRED)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("Capital Gain (USD)", _ints(1)),
        ("Capital Gain (USD)", _texts(b"1")),
        ("Capital Gain (USD)", _floats(1, 2)),
    ],
)
@pytest.mark.parametrize("default", [None, 5.0])
@pytest.mark.parametrize("parse", _PARSERS)
def test_wrong_type_or_number_of_values_is_an_error_that_names_it(
    name, feature, default, parse
):
    columns = (column(name, "float", default=default), *COLUMNS)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        parse(tf.constant([_example(**{name: feature})]), columns)
    assert name in str(raised.value)


def test_bytes_that_are_no_example_are_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="parse"):
        parsing.parse(tf.constant([b"no example"]), COLUMNS)


@pytest.mark.parametrize(
    "text", ["", " ", "\t\r\n", "?", " ?", "? \t", "not given", "  not given\n"]
)
def test_markers_and_blanks_around_them_become_the_default(text):
    assert _clean({"s": tf.constant([text, "b"])}, COLUMNS[2]) == [
        "weiß nicht".encode(),
        b"b",
    ]


@pytest.mark.parametrize(
    "text", [b"??", b"NOT GIVEN", b"notgiven", b" a ", b"\xff", b"\x00", b"?\x00"]
)
def test_other_texts_stay_as_they_are(text):
    assert _clean({"s": tf.constant([text])}, COLUMNS[2]) == [text]


def test_nan_becomes_the_default_and_nothing_else_does():
    values = [math.nan, -math.inf, 0.0, 2.5]
    assert _clean({"x": tf.constant(values)}, COLUMNS[1]) == [2.0, -math.inf, 0.0, 2.5]


def test_every_int_is_a_value():
    values = [-1, 0, 2**63 - 1]
    assert _clean({"n": tf.constant(values, tf.int64)}, COLUMNS[0]) == values


@pytest.mark.parametrize(
    ("missing", "name"), [({"s": ["b", " ? "]}, "s"), ({"x": [1.0, math.nan]}, "x")]
)
def test_required_value_that_is_missing_fails_the_request(missing, name):
    features = {
        "n": tf.constant([1, 2], tf.int64),
        "x": tf.constant([0.0, 1.0]),
        "s": tf.constant(["a", "b"]),
    }
    features |= {key: tf.constant(value) for key, value in missing.items()}
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"feature {name} is required"
    ):
        _clean(features, *REQUIRED)


def test_columns_that_are_not_named_pass_through():
    features = {"x": tf.constant([math.nan]), "w": tf.constant([math.nan])}
    cleaned = parsing.apply_missing_rule(features, COLUMNS[1:2])
    assert math.isnan(cleaned["w"].numpy()[0])
