"""Labels as the heads take them, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from helpers_records import column, declare

from input_fns import labels
from pipeline.compat import tf
from pipeline.types import Distribution, Label, Labels, Numeric

_COLUMNS = [column("x", "float"), column("y", "string"), column("z", "float")]


def _declare(label):
    return declare(_COLUMNS, [Numeric("x", "x")], label)


def _taken(label, **columns):
    """Takes labels in a dataset, as the input functions do."""

    def take(features):
        found = labels.take(features, _declare(label))
        return features, found

    values = {"x": np.zeros(len(next(iter(columns.values())))), **columns}
    dataset = tf.data.Dataset.from_tensors(values).map(take)
    features, found = next(dataset.as_numpy_iterator())
    assert not features.keys() & columns.keys()
    return found


def test_classes_stay_text():
    found = _taken(Label("y", ("no", "j\u00e1")), y=["j\u00e1", "no", "no"])
    assert found.tolist() == ["j\u00e1".encode(), b"no", b"no"]


def test_int_classes_become_text():
    found = _taken(Label("y", ("-1", "1", "7")), y=np.int64([7, -1, 1]))
    assert found.tolist() == [b"7", b"-1", b"1"]


def test_several_classes_a_row():
    label = Label("y", ("red", "green", "dark blue"), "|")
    found = _taken(
        label,
        y=["green|red", "", "dark blue", " green | green ", "red|dark blue|green"],
    )
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]]


def test_several_labels():
    label = Labels({"one": Label("y", ("a", "b")), "two": Label("z")}, {})
    found = _taken(label, y=["b", "a"], z=[1.5, -2.0])
    assert found["one"].tolist() == [b"b", b"a"]
    assert found["two"].dtype == np.float32
    assert found["two"].tolist() == [1.5, -2]


_REFUSED = {
    "1 to 3": (
        Label("y", ("0", "1", "2")),
        np.int64([1, 2, 3]),
        r"label y: not one of the classes 0, 1, 2:.*3",
    ),
    "-1 and 1": (
        Label("y", ("0", "1")),
        np.int64([-1, 1]),
        r"label y: not one of the classes 0, 1:.*-1",
    ),
    "text": (Label("y", ("a", "b")), ["a", "c"], r"classes a, b:.*\[c\]"),
    "floats": (Label("y", ("0", "1")), ["0.0", "1.0"], r"classes 0, 1:.*0\.0"),
    "one of several": (
        Label("y", ("a", "b"), "|"),
        ["a|b", "b|x"],
        r"label y: not one of the classes a, b:.*\[x\]",
    ),
    "nan": (Label("z"), np.float32([1, np.nan]), r"label z: .*finite number.*nan"),
    "inf": (Label("z"), np.float32([1, -np.inf]), r"label z: .*finite number.*-inf"),
    "poisson": (
        Label("z", distribution=Distribution.POISSON),
        np.float32([0, -0.5]),
        r"label z: .*poisson needs a finite number of at least 0.*-0\.5",
    ),
    "lognormal": (
        Label("z", distribution=Distribution.LOGNORMAL),
        np.float32([1, 0]),
        r"label z: .*lognormal needs a finite number above 0",
    ),
    "logistic": (
        Label("z", distribution=Distribution.LOGISTIC),
        np.float32([0, 1.01]),
        r"label z: .*logistic needs a number from 0 to 1.*1\.01",
    ),
}


@pytest.mark.parametrize(("label", "values", "said"), _REFUSED.values(), ids=_REFUSED)
def test_refused(label, values, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){said}"):
        _taken(label, **{label.column: values})


def test_many_classes_are_not_all_listed():
    label = Label("y", tuple(f"c{i}" for i in range(500)))
    assert _taken(label, y=["c499", "c0"]).tolist() == [b"c499", b"c0"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"c0, .*, c9 \.\.\.:"):
        _taken(label, y=["c500"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"classes": None}, "separator needs classes"),
        ({"separator": "ab"}, "one character"),
        ({"separator": " "}, "no blank"),
        ({"classes": ("a|b", "c")}, "holds the separator"),
        ({"distribution": Distribution.POISSON}, "for a regression"),
    ],
)
def test_labels_that_make_no_sense(changes, said):
    label = Label("y", ("a", "b"), "|")
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(label, **changes)


def test_several_labels_need_several_columns():
    with pytest.raises(ValueError, match="at least two"):
        Labels({"one": Label("z")}, {"one": 1.0})
    with pytest.raises(ValueError, match="one label only"):
        Labels({"one": Label("z"), "two": Label("z")}, {})
