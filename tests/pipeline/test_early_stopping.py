"""When training stops early, and which of two evaluations is the better one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import early_stopping, evaluations, metric_order
from pipeline.evaluations import Evaluation
from pipeline.flags.evaluation import EvaluationFlags
from pipeline.metric_order import MetricOrder
from pipeline.types import UserError


def _evaluations(*values: float, every: int = 10) -> list[Evaluation]:
    return [Evaluation((i + 1) * every, {"m": v}) for i, v in enumerate(values)]


def _rule(mode="min", patience=2, steps=None, delta=0.0) -> early_stopping.Rule:
    return early_stopping.rule(
        EvaluationFlags(
            early_stopping_metric="m",
            early_stopping_mode=mode,
            early_stopping_patience=patience,
            early_stopping_patience_steps=steps,
            early_stopping_min_delta=delta,
        )
    )


@pytest.mark.parametrize(
    ("rule", "values", "stops"),
    [
        (_rule(), [], False),
        (_rule(), [3], False),
        (_rule(), [3, 2, 1], False),
        (_rule(), [1, 2], False),
        (_rule(), [1, 2, 3], True),
        (_rule(), [1, 1, 1], True),
        (_rule(), [1, 2, 0.5, 2], False),
        (_rule("max"), [3, 2, 1], True),
        (_rule("max"), [1, 2, 3], False),
        (_rule(delta=0.5), [3, 2.6, 2.5], True),
        (_rule(delta=0.5), [3, 2.6, 2.4], False),
        (_rule(steps=30), [1, 2, 3], False),
        (_rule(steps=30), [1, 2, 3, 4], True),
        (_rule(steps=20), [1, 2, 3], True),
        (_rule(), [math.nan, math.nan, math.nan], True),
        (_rule(), [math.nan, 1, math.nan], False),
        (_rule(), [1, math.nan, math.nan], True),
    ],
)
def test_reason(rule, values, stops):
    assert (rule.reason(_evaluations(*values)) is not None) == stops


def test_the_reason_says_all():
    said = _rule(delta=0.25).reason(_evaluations(0.5, 0.375, 0.5))
    assert said == (
        "m has not improved by more than 0.25 on 0.5 of step 10 in 2 evaluations (20"
        " steps)"
    )


def test_no_rule_without_a_metric():
    assert early_stopping.rule(EvaluationFlags()) is None


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=8))
def test_the_directions_mirror_each_other(values):
    found = _rule("min").reason(_evaluations(*values))
    mirrored = _rule("max").reason(_evaluations(*(-v for v in values)))
    assert (found is None) == (mirrored is None)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("loss", "min"),
        ("average_loss", "min"),
        ("head/loss", "min"),
        ("mean_squared_error", "min"),
        ("accuracy", "max"),
        ("auc", "max"),
        ("auc_precision_recall", "max"),
        ("accuracy_baseline", "max"),
    ],
)
def test_names_that_tell(name, mode):
    assert metric_order.order(name, None, "best_mode").mode == mode
    assert metric_order.order(name, "max", "best_mode").mode == "max"


@pytest.mark.parametrize("name", ["gain", "glossy", "label/mean", ""])
def test_names_that_do_not_tell(name):
    with pytest.raises(UserError, match="--best_mode=min or --best_mode=max is needed"):
        metric_order.order(name, None, "best_mode")


@given(st.floats(), st.floats(), st.sampled_from(metric_order.MODES))
def test_better_is_strict_and_nan_never_is(a, b, mode):
    order = MetricOrder("m", mode)
    assert not (order.better(a, b) and order.better(b, a))
    assert not order.better(math.nan, a)
    assert not order.better(a, a)
    if not math.isnan(a):
        assert order.better(a, math.nan)


def test_evaluations_are_kept_in_order_and_replaced(tmp_path):
    directory = str(tmp_path)
    assert evaluations.read(directory) == []
    for step, value in ((20, 1.0), (10, math.inf), (20, 2.0), (30, 3.0)):
        evaluations.record(directory, Evaluation(step, {"m": value}))
    found = evaluations.read(directory)
    assert [(e.global_step, e.metrics["m"]) for e in found] == [
        (10, math.inf),
        (20, 2.0),
        (30, 3.0),
    ]
    assert evaluations.drop_after(directory, 20)
    assert [e.global_step for e in evaluations.read(directory)] == [10, 20]
    assert not evaluations.drop_after(directory, 20)


@pytest.mark.parametrize("text", ["{}x", "[1]", '[{"global_step": 1}]', "7"])
def test_a_file_of_something_else(tmp_path, text):
    (tmp_path / evaluations.FILE_NAME).write_text(text)
    with pytest.raises(UserError, match="evaluations.json"):
        evaluations.read(str(tmp_path))
