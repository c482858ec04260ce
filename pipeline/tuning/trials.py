"""The trials of a search, each in a directory of its own that tells its state."""

from __future__ import annotations

import dataclasses
import enum
import os
import statistics
from collections.abc import Sequence

from pipeline import evaluations, files
from pipeline.evaluations import Evaluation
from pipeline.metric_order import MetricOrder
from pipeline.types import UserError

_FILE = "trial.json"
_FIRST_JUDGED = 4
"""So many trials must have ended before one is pruned."""


class State(enum.Enum):
    """How far a trial is."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial.

    Attributes:
      directory: Where it is.
      number: From 0.
      parameters: Of the search, as text by name.
      state: How far it is.
    """

    directory: str
    number: int
    parameters: dict[str, str]
    state: State = State.RUNNING

    @property
    def model(self) -> str:
        """Its model directory."""
        return os.path.join(self.directory, "model")

    def evaluations(self) -> list[Evaluation]:
        return evaluations.read(self.model)

    def write(self) -> None:
        value = {"parameters": self.parameters, "state": self.state.value}
        files.write_json(os.path.join(self.directory, _FILE), value)


def directory_of(root: str, number: int) -> str:
    return os.path.join(root, f"trial-{number:04}")


def read(root: str, number: int) -> Trial | None:
    """Returns a trial; None where it was not begun.

    Raises:
      UserError: Its file is not of this pipeline.
    """
    directory = directory_of(root, number)
    path = os.path.join(directory, _FILE)
    if not os.path.exists(path):
        return None
    try:
        value = files.read_json(path)
        return Trial(
            directory, number, dict(value["parameters"]), State(value["state"])
        )
    except (TypeError, KeyError, ValueError):
        raise UserError(f"{path} is not of this pipeline; remove it") from None


def best(trial: Trial, order: MetricOrder, up_to: int | None = None) -> float | None:
    """Returns a trial's best value; None without an evaluation.

    Args:
      trial: The trial.
      order: Of the metric.
      up_to: The last step that counts; None counts all.
    """
    found = None
    for evaluation in trial.evaluations():
        if up_to is None or evaluation.global_step <= up_to:
            value = order.value(evaluation.metrics)
            if found is None or order.better(value, found):
                found = value
    return found


def is_hopeless(trial: Trial, others: Sequence[Trial], order: MetricOrder) -> bool:
    """Whether a trial is worse than the median of others at the same step.

    The rule of Google Vizier (Golovin et al., 2017), with the best values so far.

    Args:
      trial: One that runs.
      others: Those that have ended.
      order: Of the metric.
    """
    there = trial.evaluations()
    if not there:
        return False
    step = there[-1].global_step
    own = best(trial, order)
    reached = [
        t for t in others if t.evaluations() and t.evaluations()[-1].global_step >= step
    ]
    values = [value for t in reached if (value := best(t, order, step)) is not None]
    if len(values) < _FIRST_JUDGED:
        return False
    return order.better(statistics.median(values), own)
