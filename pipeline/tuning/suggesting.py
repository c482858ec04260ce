"""Who says what the next trial tries: a grid, chance, or Optuna."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from typing import Protocol

from pipeline.metric_order import MetricOrder
from pipeline.tuning import space as spaces
from pipeline.tuning import trials
from pipeline.tuning.space import Parameters, Range, Space
from pipeline.tuning.trials import State, Trial
from pipeline.types import UserError


class Suggest(Protocol):
    """Returns the parameters of a trial, or None where there are no more.

    It is asked for each trial once; what it says may depend on the trials before.
    """

    def __call__(self, number: int, before: Sequence[Trial]) -> Parameters | None: ...


def _grid(space: Space) -> Suggest:
    points = list(spaces.grid(space))
    return lambda number, before: points[number] if number < len(points) else None


def _random(space: Space, seed: int) -> Suggest:
    return lambda number, before: spaces.draw(space, seed, number)


def check(method: str) -> None:
    """Checks that a method can be had.

    Raises:
      UserError: Its library is not installed.
    """
    if method == "optuna" and importlib.util.find_spec("optuna") is None:
        raise UserError(
            "--search_method=optuna needs Optuna: pip install"
            " 'estimator-pipeline[tune]', or use --search_method=random"
        )


def _optuna(space: Space, seed: int, order: MetricOrder) -> Suggest:
    """Suggests by Optuna's TPE, from the trials before alone.

    They are told to a new study each time, so that no state of Optuna's has to survive a
    kill beside ours.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = {name: _distribution(values) for name, values in space.items()}
    direction = "minimize" if order.mode == "min" else "maximize"

    def suggest(number: int, before: Sequence[Trial]) -> Parameters:
        sampler = optuna.samplers.TPESampler(seed=(seed + number) % 2**32)
        study = optuna.create_study(direction=direction, sampler=sampler)
        for trial in before:
            value = trials.best(trial, order)
            if value is None or trial.state is State.FAILED:
                continue
            study.add_trial(
                optuna.trial.create_trial(
                    params={
                        name: _value(space[name], text)
                        for name, text in trial.parameters.items()
                    },
                    distributions=distributions,
                    value=value,
                )
            )
        asked = study.ask(distributions)
        return {
            name: value if isinstance(value, str) else f"{value:.6g}"
            for name, value in asked.params.items()
        }

    return suggest


def _value(values, text: str):
    if not isinstance(values, Range):
        return text
    number = min(max(float(text), values.low), values.high)
    return int(number) if values.whole else number


def _distribution(values):
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(values.values)
    if values.whole:
        low, high = int(values.low), int(values.high)
        return distributions.IntDistribution(low, high, log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)


def suggester(method: str, space: Space, seed: int, order: MetricOrder) -> Suggest:
    """Returns the method by its name.

    Raises:
      UserError: The space is none for it, or its library is not installed.
    """
    check(method)
    if method == "grid":
        return _grid(space)
    if method == "random":
        return _random(space, seed)
    return _optuna(space, seed, order)


def size(method: str, space: Space, asked: int) -> int:
    """Returns the number of trials."""
    if method != "grid":
        return asked
    return len(list(itertools.islice(spaces.grid(space), asked)))
