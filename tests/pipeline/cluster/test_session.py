"""What tasks tell each other in files."""

from __future__ import annotations

import pytest

from pipeline.cluster import session
from pipeline.cluster.session import Session, State, StopTogether


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("asked", [{0: 5}, {1: 5}, {0: 5, 1: 5}, {0: 5, 1: 6}])
def test_workers_in_step_stop_after_the_same_step(tmp_path, order, asked):
    """Each call of is_due comes between two steps, which all begin together."""
    workers = [StopTogether(str(tmp_path)) for _ in range(2)]
    stopped = {}
    for step in range(1, 9):
        for number in order:
            is_asked = step >= asked.get(number, 100)
            if workers[number].is_due(step, is_asked):
                stopped.setdefault(number, step)
        if stopped:
            break
    assert stopped == {0: 6, 1: 6}


def test_an_earlier_session_is_forgotten(tmp_path):
    directory = str(tmp_path / "model")
    session.clear(directory)
    session.write(directory, Session(State.TRAINING, 3))
    assert session.read(directory) == Session(State.TRAINING, 3)
    assert not StopTogether(directory).is_due(1, True)
    assert StopTogether(directory).is_due(2, False)
    session.clear(directory)
    assert session.read(directory) is None
    assert not StopTogether(directory).is_due(2, False)
