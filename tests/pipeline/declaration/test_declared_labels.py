"""Labels of every kind in a declaration: read, written, and met by the data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pipeline import declaration
from pipeline.preprocess import schema, typed
from pipeline.preprocess.sources.base import RawBatch
from pipeline.types import Distribution, Label, Labels, Task, UserError

_REST = """
columns:
  x: {type: float}
  tags: {type: string, default: "|"}
  plain: {type: string}
  count: {type: int}
  share: {type: float}
features:
  x: {kind: numeric}
"""


def _load(tmp_path, label: str):
    path = tmp_path / "features.yaml"
    path.write_text(f"{label}\n{_REST}", encoding="utf-8")
    return declaration.load(str(path))


_LABELS = {
    "several classes": (
        'label: {column: tags, classes: [a, "b c"], separator: "|"}',
        Label("tags", ("a", "b c"), "|"),
        Task.MULTI_LABEL,
    ),
    "poisson": (
        "label: {column: count, distribution: poisson}",
        Label("count", distribution=Distribution.POISSON),
        Task.REGRESSION,
    ),
    "several labels": (
        "labels:\n"
        "  bought: {column: plain, classes: [no, 'yes'], weight: 0.5}\n"
        '  tags: {column: tags, classes: [a, b], separator: "|"}\n'
        "  share: {column: share, distribution: logistic}",
        Labels(
            {
                "bought": Label("plain", ("no", "yes")),
                "tags": Label("tags", ("a", "b"), "|"),
                "share": Label("share", distribution=Distribution.LOGISTIC),
            },
            {"bought": 0.5, "tags": 1.0, "share": 1.0},
        ),
        Task.MULTI_TASK,
    ),
}


@pytest.mark.parametrize(("text", "wanted", "task"), _LABELS.values(), ids=_LABELS)
def test_read_and_written(tmp_path, text, wanted, task):
    found = _load(tmp_path, text)
    assert found.label == wanted
    assert found.label.task is task
    copy = tmp_path / "copy.yaml"
    copy.write_text(declaration.dump(found), encoding="utf-8")
    assert declaration.load(str(copy)) == found
    schema.to_text(found)


_WRONG = {
    "both": (
        "label: {column: share}\nlabels: {a: {column: x}}",
        "2:1: labels: give either",
    ),
    "one only": ("labels: {a: {column: share}}", "1:9: labels: labels needs at least"),
    "twice": (
        "labels: {a: {column: share}, b: {column: share}}",
        "a column may be one label only",
    ),
    "name": ("labels: {a b: {column: share}}", "1:10: labels.a b: 'a b' cannot be"),
    "weight": (
        "labels: {a: {column: share, weight: 0}, b: {column: count}}",
        "labels.a.weight: a weight must be above 0",
    ),
    "weight of one": ("label: {column: share, weight: 2}", "weight: unknown"),
    "feature": ("label: {column: x}", "x is the label"),
    "feature among several": (
        "labels: {a: {column: share}, b: {column: x}}",
        "x is the label",
    ),
    "distribution": (
        "label: {column: count, distribution: gamma}",
        "allowed: normal, lognormal, poisson, logistic",
    ),
    "distribution of classes": (
        "label: {column: count, classes: [0, 1], distribution: poisson}",
        "distribution is for a regression",
    ),
    "separator of ints": (
        'label: {column: count, classes: [0, 1], separator: "|"}',
        "column count is not a string",
    ),
    "separator in a class": (
        'label: {column: plain, classes: ["a|b", c], separator: "|"}',
        "holds the separator",
    ),
    "default of one class": (
        'label: {column: tags, classes: [a, "|"]}',
        "may not have a default",
    ),
    "default of several": (
        'label: {column: tags, classes: [a, b], separator: ";"}',
        "the default of column tags holds '|', which is not one of the classes; for"
        " none of them the default is ';'",
    ),
}


@pytest.mark.parametrize(("text", "said"), _WRONG.values(), ids=_WRONG)
def test_wrong_labels(tmp_path, text, said):
    with pytest.raises(UserError) as caught:
        _load(tmp_path, text)
    assert said in str(caught.value)


def _converted(found, **columns):
    """Returns the good rows' values and the reasons of the others."""
    rows = len(next(iter(columns.values())))
    values = {"x": ["1"] * rows, "tags": ["a"] * rows, "plain": ["p"] * rows}
    values |= {"count": ["1"] * rows, "share": ["0.5"] * rows} | columns
    table = pa.record_batch(
        [pa.array([v.encode() for v in values[c]]) for c in found.columns],
        list(found.columns),
    )
    raw = RawBatch(
        path="file",
        table=table,
        lines=np.arange(1, rows + 1),
        rejects=(),
        rows_read=rows,
        texts=lambda row: b"%d" % row,
    )
    batch, rejects = typed.convert(raw, tuple(found.columns.values()), found.label)
    return batch.table.to_pydict(), {r.line: r.reason for r in rejects}


def test_rows_with_several_classes(tmp_path):
    found = _load(
        tmp_path, 'label: {column: tags, classes: [a, "b c", \u00e9], separator: "|"}'
    )
    tags = ["a|b c", " \u00e9 | a ", "", "|", "a|x", "A", "b|c"]
    values, reasons = _converted(found, tags=tags)
    assert values["tags"] == [b"a|b c", "\u00e9 | a".encode(), None, b"|"]
    assert sorted(reasons) == [5, 6, 7]
    assert reasons[5] == (
        "column tags: 'a|x' is not one of the classes 'a', 'b c', '\u00e9'"
    )


def test_rows_with_several_labels(tmp_path):
    found = _load(
        tmp_path,
        "labels: {one: {column: plain, classes: [p, q]},"
        " two: {column: count, classes: [0, 1]}}",
    )
    values, reasons = _converted(found, plain=["p", "r", "q"], count=["1", "0", "2"])
    assert values["plain"] == [b"p"]
    assert sorted(reasons) == [2, 3]


@pytest.mark.parametrize(
    ("distribution", "share", "bad"),
    [
        ("poisson", ["0", "-0.1", "7"], [2]),
        ("lognormal", ["0", "-0.1", "7"], [1, 2]),
        ("logistic", ["0", "1", "1.1", "-0.1"], [3, 4]),
        ("normal", ["0", "-5"], []),
    ],
)
def test_numbers_that_a_distribution_has_not(tmp_path, distribution, share, bad):
    found = _load(tmp_path, f"label: {{column: share, distribution: {distribution}}}")
    _, reasons = _converted(found, share=share)
    assert sorted(reasons) == bad
    assert all(distribution in reason for reason in reasons.values())
