"""Splits, allowed values and identity features in a feature declaration."""

from __future__ import annotations

import dataclasses

import pytest

from pipeline import declaration as declarations
from pipeline.types import (
    Column,
    ColumnSplit,
    ColumnType,
    Identity,
    OutOfRange,
    TimeSplit,
    UserError,
    WindowSplit,
)

COLUMNS = """columns:
  age: {type: int, min: 0, max: 120, default: -1, out_of_range: missing}
  price: {type: float, min: 0.5, out_of_range: clip}
  sex: {type: string, values: [f, m, "1"], min_fraction: 0.9, default: x, drift: 0.2}
  date: {type: string}
  day: {type: int}
features:
  age: {kind: numeric}
  day: {kind: identity, buckets: 7, embedding: 3}
"""
BY_TIME = """split:
  by: time
  column: date
  boundaries: {eval: "2013-11-01", test: 2013-12-01 06:30Z}
"""
BY_COLUMN = """split:
  by: column
  column: day
  values: {train: [0, 1], eval: [2], test: [03]}
"""


def load(tmp_path, text):
    path = tmp_path / "features.yaml"
    path.write_text(text, encoding="utf-8")
    return declarations.load(str(path))


def test_columns_and_identity(tmp_path):
    found = load(tmp_path, COLUMNS)
    assert found.columns["age"] == Column(
        "age",
        ColumnType.INT,
        default=-1,
        min=0,
        max=120,
        out_of_range=OutOfRange.MISSING,
    )
    assert found.columns["price"].out_of_range is OutOfRange.CLIP
    sex = found.columns["sex"]
    assert (sex.values, sex.min_fraction, sex.drift) == (("f", "m", "1"), 0.9, 0.2)
    assert found.features["day"] == Identity("day", "day", 7, 3)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        (
            BY_TIME,
            TimeSplit(
                "date", {"eval": "2013-11-01T00:00:00", "test": "2013-12-01T06:30:00"}
            ),
        ),
        (
            BY_COLUMN,
            ColumnSplit("day", {"train": ("0", "1"), "eval": ("2",), "test": ("3",)}),
        ),
    ],
)
def test_what_is_written_is_read_back(tmp_path, text, split):
    found = load(tmp_path, text + COLUMNS)
    assert found.split == split
    assert found.split.names == ("train", "eval", "test")
    assert load(tmp_path, declarations.dump(found)) == found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max: 120", "max: -5", ":6:8: columns.age: min 0 is above max -5"),
        ("max: 120", "values: [a]", "columns.age: values are for strings"),
        ("max: 120", "max: 1e3", "columns.age.max: '1e3' is not a whole number"),
        ("max: 120", "max: 9223372036854775808", "does not fit in 64 bits"),
        ("min: 0.5", "min: 1e39", "does not fit in a 32-bit float"),
        ("values: [f, m,", "max: 3, values: [m,", "min and max are for numbers"),
        ("values: [f, m, \"1\"]", "values: []", "values allows nothing"),
        ("default: x", "out_of_range: missing", "missing needs a default"),
        ("drift: 0.2", "out_of_range: clip", "only numbers can be clipped"),
        ("drift: 0.2", "out_of_range: drop", "'drop' is unknown; allowed: reject, clip"),
        ("drift: 0.2", "drift: 2", "drift is 2.0, not in"),
        ("column: day", "column: price", ":3:11: split.column: price is a float"),
        ("column: day", "column: dai", "'dai' is not under `columns`"),
        ("eval: [2]", "eval: [1]", ":4:11: split.values: value '1' stands twice"),
        ("eval: [2]", "eval: [x]", "split.values.eval.0: 'x' is not a whole number"),
        ("eval: [2], ", "", "split.values: needs exactly train, eval, test"),
        ("by: column", "by: tim", ":2:7: split.by: 'tim' is unknown; allowed: hash"),
        ("by: column", "by: time", "split: needs boundaries|unknown; allowed here"),
        ("buckets: 7", "buckets: 1099511627776", r"buckets: 10995\d+ buckets would need 49,152 GiB in training"),
        ("buckets: 7", "buckets: 0", "0 is not a whole number of at least 1"),
        ("column: day", "column: day, key: [age]", "line|mapping|YAML"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_with_the_place(tmp_path, old, new, message):
    text = BY_COLUMN + COLUMNS
    assert old in text
    with pytest.raises(UserError, match=message) as raised:
        load(tmp_path, text.replace(old, new))
    assert "features.yaml:" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2013-12-01 06:30Z", "2013-10-01", "boundaries must rise"),
        ("2013-12-01 06:30Z", "2013-12-01T06:30+01:00", "is not an ISO 8601 date"),
        ("2013-12-01 06:30Z", "2013", "'2013' is not an ISO 8601 date"),
        ('eval: "2013-11-01"', 'dev: "2013-11-01"', "needs exactly eval, test"),
    ],
)
def test_mistakes_in_boundaries(tmp_path, old, new, message):
    with pytest.raises(UserError, match=f"features.yaml:4:.*{message}"):
        load(tmp_path, BY_TIME.replace(old, new) + COLUMNS)


def test_a_million_million_ids_are_refused_with_an_estimate(tmp_path):
    text = COLUMNS.replace("buckets: 7, embedding: 3", f"buckets: {2**40}")
    with pytest.raises(UserError, match="would need 24,576 GiB in training"):
        load(tmp_path, text)


def test_only_ints_are_ids(tmp_path):
    with pytest.raises(UserError, match="column price is of type float; .* needs int"):
        load(tmp_path, COLUMNS.replace("buckets: 7", "buckets: 7, column: price"))


def test_int_labels_are_written_and_read_back(tmp_path):
    label = "label: {column: day, classes: [0, 1]}\n"
    text = COLUMNS.replace("  day: {kind: identity, buckets: 7, embedding: 3}\n", "")
    found = load(tmp_path, label + text)
    assert load(tmp_path, declarations.dump(found)) == found


def test_frozen(tmp_path):
    found = load(tmp_path, COLUMNS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.columns["age"].min = 3


def test_split_by_window(tmp_path):
    found = load(tmp_path, COLUMNS + "split: {by: window}\n")
    assert found.split == WindowSplit()
    assert load(tmp_path, declarations.dump(found)) == found
    with pytest.raises(UserError, match="column"):
        load(tmp_path, COLUMNS + "split: {by: window, column: day}\n")
