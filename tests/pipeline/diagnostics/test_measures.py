"""Curves and tables against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.diagnostics import measures, slices
from pipeline.diagnostics.rows import Rows
from pipeline.types import Label

_BINARY = Label("y", classes=("no", "yes"))
_ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0]),
        st.integers(0, 8).map(lambda n: n / 8),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    ),
    max_size=12,
)


def _binary(values) -> Rows:
    truth, score, weight = np.array(values, float).reshape(-1, 3).T
    return Rows(_BINARY, truth, (score > 0.5).astype(float), score, weight)


@settings(max_examples=100, deadline=None)
@given(_ROWS)
def test_auc(values):
    pairs = right = 0.0
    for truth, score, weight in values:
        for other, other_score, other_weight in values:
            if truth == 1 and other == 0:
                pairs += weight * other_weight
                half = (score > other_score) + (score >= other_score)
                right += weight * other_weight * half / 2
    expected = right / pairs if pairs else float("nan")
    np.testing.assert_allclose(measures.auc(_binary(values)), expected)


@settings(max_examples=100, deadline=None)
@given(_ROWS)
def test_counts(values):
    found = measures.counts(_binary(values))
    for place in (0, 50, 75, 100, 200):
        threshold = place / (measures.THRESHOLDS - 1)
        expected = np.zeros(4)
        for truth, score, weight in values:
            taken = score >= threshold
            expected[(0 if truth else 1) if taken else (3 if truth else 2)] += weight
        assert np.allclose(
            [
                found.true_positives[place],
                found.false_positives[place],
                found.true_negatives[place],
                found.false_negatives[place],
            ],
            expected,
        )
    for curve in (found.precision(), found.recall(), found.false_positive_rate()):
        assert ((curve >= 0) & (curve <= 1 + 1e-12)).all()


@settings(max_examples=50, deadline=None)
@given(_ROWS)
def test_confusion_and_calibration_hold_every_row(values):
    rows = _binary(values)
    matrix = measures.confusion(rows)
    assert matrix.shape == (2, 2)
    np.testing.assert_allclose(matrix.sum(), rows.weight.sum())
    np.testing.assert_allclose(
        np.trace(matrix), rows.weight[rows.truth == rows.predicted].sum()
    )
    bins = measures.calibration(rows)
    assert sum(bin_.rows for bin_ in bins) == len(rows)
    means = [b.mean_prediction for b in bins if not np.isnan(b.mean_prediction)]
    assert means == sorted(means)


def test_metrics_of_numbers():
    rows = Rows(
        Label("y"),
        np.array([1.0, 2.0, 5.0]),
        np.array([2.0, 2.0, 5.0]),
        np.array([2.0, 2.0, 2.0]),
        np.array([1.0, 3.0, 0.0]),
    )
    found = measures.metrics(rows)
    assert found["average_loss"] == 0.25 and found["mae"] == 0.25
    assert found["rmse"] == 0.5 and found["mean_label"] == 1.75


def test_many_classes_have_no_confusion_matrix():
    label = Label("y", classes=tuple(map(str, range(51))))
    one = np.ones(1)
    assert measures.confusion(Rows(label, one, one, one, one)) is None


def test_slices_leave_out_the_small_ones():
    rows = _binary([(i % 2, 0.25, 1.0) for i in range(10)])
    values = np.array(list("aaaaabbbbc"), object)
    found = slices.of_columns(rows, {"c": values}, 2)
    assert [(s.value, s.rows) for s in found.slices] == [("a", 5), ("b", 4)]
    assert found.left_out == {"c": 1}
    assert found.slices[1].metrics["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5, np.nan], ["1", "2.5", "(missing)"]),
        (np.arange(100.0), 4 * [25]),
        (np.r_[np.zeros(80), np.arange(60.0)], None),
    ],
)
def test_numbers_as_text(values, expected):
    found = slices.in_ranges(np.array(values, float))
    names, counts = np.unique(found.astype(str), return_counts=True)
    if isinstance(expected, list) and isinstance(expected[0], str):
        assert list(found) == expected
    elif expected:
        assert sorted(counts) == expected
    else:
        assert counts.sum() == 140 and 2 <= len(names) <= 4
