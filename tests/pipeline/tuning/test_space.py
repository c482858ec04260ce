"""What is searched, and what the methods suggest."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import evaluations
from pipeline.evaluations import Evaluation
from pipeline.metric_order import MetricOrder
from pipeline.tuning import space, suggesting, trials
from pipeline.tuning.space import Choice, Range
from pipeline.tuning.trials import State, Trial
from pipeline.types import UserError

_TEXT = "rate=0.001..0.1:log; units=[64]|[128,64] ;n=1..3;drop=0.0..0.5"


def test_parse():
    assert space.parse(_TEXT) == {
        "rate": Range(0.001, 0.1, log=True),
        "units": Choice(("[64]", "[128,64]")),
        "n": Range(1, 3, whole=True),
        "drop": Range(0, 0.5),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--search is needed"),
        ("a", "not of the form"),
        ("a=", "not of the form"),
        ("a=1..x", "no range of numbers"),
        ("a=2..1", "empty"),
        ("a=1..nan", "empty"),
        ("a=0..1:log", "above 0"),
        ("a=1|1", "must differ"),
        ("a=1|2;a=3", "twice"),
    ],
)
def test_mistakes(text, said):
    with pytest.raises(UserError, match=said) as caught:
        space.parse(text)
    assert "\n" not in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 1000))
def test_random_trials_are_inside_and_always_the_same(seed, number):
    found = space.draw(space.parse(_TEXT), seed, number)
    assert found == space.draw(space.parse(_TEXT), seed, number)
    assert 0.001 <= float(found["rate"]) <= 0.1
    assert found["n"] in ("1", "2", "3") and found["units"] in ("[64]", "[128,64]")


def test_grid():
    searched = space.parse("a=1|2;b=x|y|z")
    suggest = suggesting.suggester("grid", searched, 1, MetricOrder("loss", "min"))
    points = [suggest(number, []) for number in range(6)]
    assert points[0] == {"a": "1", "b": "x"} and points[5] == {"a": "2", "b": "z"}
    assert len({tuple(point.items()) for point in points}) == 6
    assert suggest(6, []) is None
    assert suggesting.size("grid", searched, 100) == 6
    with pytest.raises(UserError, match="is a range"):
        suggesting.suggester("grid", space.parse("a=1..2"), 1, None)


def _trial(tmp_path, number, values, state=State.COMPLETE, **parameters) -> Trial:
    directory = tmp_path / f"trial-{number:04}"
    (directory / "model").mkdir(parents=True)
    for step, value in values.items():
        evaluations.record(
            str(directory / "model"), Evaluation(step, {"loss": float(value)})
        )
    trial = Trial(str(directory), number, parameters or {"rate": "0.01"}, state)
    trial.write()
    return trial


def test_hopeless_is_worse_than_the_median_at_the_same_step(tmp_path):
    order = MetricOrder("loss", "min")
    others = [_trial(tmp_path, n, {10: n, 20: n / 10}) for n in range(1, 4)]
    bad = _trial(tmp_path, 8, {10: 5}, State.RUNNING)
    assert not trials.is_hopeless(bad, others, order), "too few to judge by"
    others.append(_trial(tmp_path, 4, {10: 4}))
    assert trials.is_hopeless(bad, others, order)
    fair = _trial(tmp_path, 9, {10: 2}, State.RUNNING)
    assert not trials.is_hopeless(fair, others, order)
    # At step 20 there are three only.
    later = _trial(tmp_path, 10, {20: 9}, State.RUNNING)
    assert not trials.is_hopeless(later, others, order)
    unborn = _trial(tmp_path, 11, {}, State.RUNNING)
    assert not trials.is_hopeless(unborn, others, order)
    assert trials.read(str(tmp_path), 4) == others[-1]
    assert trials.read(str(tmp_path), 99) is None


@pytest.mark.skipif(
    importlib.util.find_spec("optuna") is not None, reason="Optuna is installed"
)
def test_optuna_is_asked_for_by_name():
    with pytest.raises(UserError, match="needs Optuna"):
        suggesting.check("optuna")


@pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="Optuna is no extra here"
)
def test_optuna_learns_from_the_trials_before(tmp_path):
    searched = space.parse("x=0.0..1.0; c=a|b; n=1..8:log")
    order = MetricOrder("loss", "min")
    suggest = suggesting.suggester("optuna", searched, 3, order)
    before = []
    for number in range(30):
        found = suggest(number, before)
        assert found == suggest(number, before), "a resumed search asks the same"
        assert found.keys() == searched.keys()
        loss = (float(found["x"]) - 0.3) ** 2 + (found["c"] == "a")
        before.append(_trial(tmp_path, number, {1: loss}, **found))
    last = before[-10:]
    assert sum(trial.parameters["c"] == "b" for trial in last) >= 7
