"""The rules of blessing, on evidence of any kind."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declaration import load
from pipeline.flags.blessing import BlessingFlags, Threshold
from pipeline.metric_order import MetricOrder
from pipeline.retraining import verdict
from pipeline.retraining.bootstrap import Interval
from pipeline.retraining.verdict import Evidence, Kind, Serving, Slice
from pipeline.types import UserError

FLAGS = BlessingFlags(metric="auc", max_drop=0.01, min_test_rows=100)
GOOD = Evidence(
    rows=1000,
    order=MetricOrder("auc", "max"),
    candidate={"auc": 0.7, "average_loss": 0.5},
    champion={"auc": 0.69, "average_loss": 0.51},
    baseline={"auc": 0.5, "average_loss": 0.6},
    interval=Interval(0.01, -0.005, 0.02),
    slices=(Slice("city", "Ulm", 400, 0.0),),
    not_finite=0,
    spread=0.8,
    miscalibration=0.01,
    serving=Serving(500, 1e-7),
)


def kind(changes: dict, flags: BlessingFlags = FLAGS) -> Kind:
    return verdict.decide(dataclasses.replace(GOOD, **changes), flags).kind


def failed(changes: dict, flags: BlessingFlags = FLAGS) -> list[str]:
    decided = verdict.decide(dataclasses.replace(GOOD, **changes), flags)
    assert (decided.kind is Kind.BLESSED) == all(r.passed for r in decided.rules)
    return [rule.name for rule in decided.rules if not rule.passed]


def test_a_good_candidate():
    assert kind({}) is Kind.BLESSED
    assert failed({}) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"rows": 99}, "rows"),
        ({"not_finite": 1}, "finite"),
        ({"spread": 0.0}, "not constant"),
        ({"spread": math.nan}, "not constant"),
        ({"miscalibration": 0.21}, "calibration"),
        ({"miscalibration": math.nan}, "calibration"),
        ({"interval": Interval(-0.02, -0.05, 0.01)}, "change"),
        ({"interval": Interval(-0.005, -0.009, -0.001)}, "interval"),
        ({"slices": (Slice("city", "Ulm", 400, -0.06),)}, "slice city=Ulm"),
    ],
)
def test_each_rule_by_itself(changes, rule):
    assert failed(changes) == [rule]


def test_small_slices_are_not_judged():
    assert failed({"slices": (Slice("city", "Ulm", 199, -0.9),)}) == []
    assert failed({"slices": (Slice("city", "Ulm", 400, math.nan),)}) == []


def test_nothing_finite_breaks_every_comparison():
    never = Interval(math.nan, math.nan, math.nan)
    assert {"change", "interval"} <= set(failed({"interval": never}))


def test_which_interval_is_asked_for():
    better = dataclasses.replace(FLAGS, interval="better")
    assert failed({}, better) == ["interval"]
    assert failed({"interval": Interval(0.01, 0.001, 0.02)}, better) == []
    off = dataclasses.replace(FLAGS, interval="off")
    assert failed({"interval": Interval(-0.005, -0.009, -0.001)}, off) == []


def test_thresholds():
    wanted = Threshold("auc", True, 0.71), Threshold("average_loss", False, 0.5)
    flags = dataclasses.replace(FLAGS, thresholds=wanted)
    assert failed({}, flags) == ["threshold auc>=0.71"]
    assert failed({"candidate": {"auc": math.nan, "average_loss": 0.5}}, flags) == [
        "threshold auc>=0.71"
    ]


def test_a_first_run_has_its_own_rule():
    first = {"champion": None, "interval": None, "slices": ()}
    assert failed(first) == []
    assert failed({**first, "candidate": {"auc": 0.5}}) == [
        "first: better than a constant"
    ]
    loss = {"order": MetricOrder("average_loss", "min")}
    assert failed({**first, **loss}) == []
    worse = {"candidate": {"average_loss": 0.61}}
    assert failed({**first, **loss, **worse}) == ["first: better than a constant"]


def test_too_few_rows_is_a_verdict_of_its_own():
    assert kind({"rows": 99}) is Kind.TOO_FEW_ROWS
    assert kind({"rows": 99, "not_finite": 3}) is Kind.TOO_FEW_ROWS
    assert kind({"rows": 100}) is Kind.BLESSED


NUMBERS = st.one_of(st.floats(-1, 1), st.just(math.nan))


@st.composite
def evidences(draw) -> Evidence:
    ends = sorted(draw(st.lists(st.floats(-1, 1), min_size=3, max_size=3)))
    found = Interval(ends[1], ends[0], ends[2])
    has_champion = draw(st.booleans())
    return dataclasses.replace(
        GOOD,
        rows=draw(st.integers(0, 300)),
        candidate={"auc": draw(NUMBERS)},
        champion={"auc": 0.5} if has_champion else None,
        interval=found if has_champion else None,
        slices=(Slice("a", "b", draw(st.integers(0, 500)), draw(NUMBERS)),)
        if has_champion
        else (),
        not_finite=draw(st.integers(0, 2)),
        spread=draw(NUMBERS),
        miscalibration=draw(NUMBERS),
    )


@given(evidences(), st.booleans())
def test_a_verdict_follows_from_its_rules(evidence, force):
    flags = dataclasses.replace(FLAGS, force=force, reason="so be it")
    decided = verdict.decide(evidence, flags)
    passed = all(rule.passed for rule in decided.rules)
    assert (decided.kind is Kind.BLESSED) == passed
    assert (decided.kind is Kind.TOO_FEW_ROWS) == (evidence.rows < 100)
    assert decided.publishes == (passed or force)
    assert decided.forced == ("so be it" if force else None)
    # Forcing changes what happens, not what was found.
    plain = verdict.decide(evidence, FLAGS)
    assert (plain.kind, plain.rules) == (decided.kind, decided.rules)
    for rule in decided.rules:
        assert rule.reason
        assert rule.value is None or math.isfinite(rule.value)
    assert verdict.decide(evidence, flags) == decided


@given(evidences(), st.floats(0, 1))
def test_more_tolerance_never_takes_a_blessing_away(evidence, more):
    flags = dataclasses.replace(FLAGS, max_drop=0.01 + more, slice_max_drop=0.05 + more)
    if verdict.decide(evidence, FLAGS).kind is Kind.BLESSED:
        assert verdict.decide(evidence, flags).kind is Kind.BLESSED


DECLARED = """
label: {column: y, classes: ["0", "1"]}
columns: {x: {type: int}, y: {type: int}}
features: {x: {kind: numeric}}
"""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metric": "rmse"}, "'rmse' is no metric of binary"),
        ({"thresholds": (Threshold("f1", True, 1),)}, "'f1' is no metric"),
        ({"slices": ("z",)}, "no column z is declared; there are x, y"),
        ({"force": True}, "--reason=TEXT"),
    ],
)
def test_rules_that_cannot_be_applied(tmp_path, changes, said):
    path = tmp_path / "features.yaml"
    path.write_text(DECLARED)
    with pytest.raises(UserError, match=said):
        verdict.check_flags(dataclasses.replace(FLAGS, **changes), load(str(path)))
