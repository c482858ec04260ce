"""Windows of days: every day once, roles in order, nights one day apart."""

from __future__ import annotations

import datetime
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retraining.window import ROLES, Window
from pipeline.types import UserError


@st.composite
def windows(draw) -> Window:
    evaluated = draw(st.integers(1, 20))
    tested = draw(st.integers(1, 20))
    days = draw(st.integers(evaluated + tested + 1, 120))
    date = draw(st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1)))
    return Window(date, days, evaluated, tested)


@given(windows())
def test_days_and_roles(window):
    dates = window.dates()
    assert len(dates) == window.days
    assert dates[-1] == window.run_date
    steps = {later - earlier for earlier, later in itertools.pairwise(dates)}
    assert steps == {datetime.timedelta(days=1)}
    roles = [window.role(date) for date in dates]
    assert roles == sorted(roles, key=ROLES.index)
    assert roles.count("eval") == window.eval_days
    assert roles.count("test") == window.test_days
    assert roles.count("train") >= 1


@given(windows())
def test_what_judges_was_never_learned_from(window):
    """Neither by the candidate of a night nor by that of any night before."""
    judged = {d for d in window.dates() if window.role(d) == "test"}
    for _ in range(3):
        later = window.next()
        assert later.first == window.first + datetime.timedelta(days=1)
        learned = {d for d in window.dates() if window.role(d) != "test"}
        judges = {d for d in later.dates() if later.role(d) == "test"}
        assert not learned & judges
        window = later
    assert judged


@given(windows(), st.integers(1, 500))
def test_a_day_outside_has_no_role(window, distance):
    with pytest.raises(ValueError, match="not in the window"):
        window.role(window.first - datetime.timedelta(days=distance))
    with pytest.raises(ValueError, match="not in the window"):
        window.role(window.run_date + datetime.timedelta(days=distance))


@given(windows(), st.integers(0, 40))
def test_a_window_without_a_day_to_learn_from(window, missing):
    days = window.eval_days + window.test_days - missing
    with pytest.raises(UserError, match="--window_days"):
        Window(window.run_date, days, window.eval_days, window.test_days)


def test_before_the_calendar():
    with pytest.raises(UserError, match="--run_date=0001-01-05"):
        Window(datetime.date(1, 1, 5), 10, 1, 1)
