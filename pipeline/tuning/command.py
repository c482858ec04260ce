"""The tune command: trains the trials of a search, and says which was the best."""

from __future__ import annotations

import dataclasses
import functools
import os

from model_fns import registry
from pipeline import files, metric_order, model_dir
from pipeline.dataset import open_dataset
from pipeline.invocation import Invocation
from pipeline.metric_order import MetricOrder
from pipeline.tuning import running, space, suggesting, trials
from pipeline.tuning.space import Parameters, Space
from pipeline.tuning.trials import State, Trial
from pipeline.types import UserError

_FILE = "tune.json"
_FLAGS_FILE = "tune.flags"
_BATCH_SIZE = "batch_size"
_SHOWN = 10


def _hparams(call: Invocation, parameters: Parameters) -> str:
    searched = [f"{n}={v}" for n, v in parameters.items() if n != _BATCH_SIZE]
    return ",".join(filter(None, [call.training.hparams.strip(), *searched]))


def _check(call: Invocation, searched: Space) -> None:
    """Checks the first value of everything that is searched, as train would."""
    registry.find(call.training.model)
    first = {
        name: values.values[0]
        if isinstance(values, space.Choice)
        else f"{int(values.low) if values.whole else values.low}"
        for name, values in searched.items()
    }
    try:
        model_dir.parse_hparams(call.training.model, _hparams(call, first))
    except UserError as error:
        raise UserError(f"--search, {error}") from None
    if _BATCH_SIZE in first and not first[_BATCH_SIZE].isdigit():
        raise UserError(f"--search: batch_size={first[_BATCH_SIZE]} is no whole number")


def _begin(call: Invocation, directory: str) -> None:
    """Writes down what the search is, or checks that it is the same one.

    Raises:
      UserError: The directory is of another search.
    """
    value = {
        "search": call.tuning.search,
        "method": call.tuning.method,
        "model": call.training.model,
        "hparams": call.training.hparams,
        "seed": call.training.seed,
        "epochs": call.training.epochs,
        "max_steps": call.training.max_steps,
        "metric": call.training.evaluation.best_metric,
        "dataset": open_dataset(call.paths.dataset).manifest.fingerprint,
    }
    path = os.path.join(directory, _FILE)
    if os.path.exists(path):
        old = files.read_json(path)
        changed = sorted(name for name in value if old.get(name) != value[name])
        if changed:
            raise UserError(
                f"--tune_dir: {directory} is of another search ({', '.join(changed)}"
                " changed); give another --tune_dir"
            )
        return
    files.write_json(path, value)


def _arguments(call: Invocation, directory: str, trial: Trial) -> list[str]:
    found = [
        f"--flagfile={os.path.join(directory, _FLAGS_FILE)}",
        f"--dataset_dir={call.paths.dataset}",
        f"--model_dir={trial.model}",
        f"--hparams={_hparams(call, trial.parameters)}",
        "--verbosity=0",
    ]
    if _BATCH_SIZE in trial.parameters:
        found.append(f"--batch_size={trial.parameters[_BATCH_SIZE]}")
    return found


def _shown(parameters: Parameters) -> str:
    return ",".join(f"{name}={value}" for name, value in parameters.items())


def _run_all(
    call: Invocation,
    directory: str,
    searched: Space,
    order: MetricOrder,
    suggest: suggesting.Suggest,
) -> list[Trial]:
    ended: list[Trial] = []
    count = suggesting.size(call.tuning.method, searched, call.tuning.trials)
    for number in range(count):
        trial = trials.read(directory, number)
        if trial is None:
            parameters = suggest(number, ended)
            trial = Trial(trials.directory_of(directory, number), number, parameters)
            os.makedirs(trial.directory, exist_ok=True)
            trial.write()
        if trial.state is State.RUNNING:
            call.console.progress(
                f"tune: trial {number + 1} of {count}: {_shown(trial.parameters)}"
            )
            hopeless = functools.partial(trials.is_hopeless, trial, ended, order)
            state = running.run(
                trial,
                _arguments(call, directory, trial),
                hopeless if call.tuning.prune else lambda: False,
            )
            trial = dataclasses.replace(trial, state=state)
            trial.write()
            value = trials.best(trial, order)
            call.console.progress(
                f"tune: trial {number + 1} {state.value}"
                + ("" if value is None else f": {order.metric} {value:.6g}")
            )
        ended.append(trial)
    return ended


def _say(call: Invocation, ended: list[Trial], order: MetricOrder) -> None:
    judged = [
        (value, trial)
        for trial in ended
        if trial.state is not State.FAILED
        and (value := trials.best(trial, order)) is not None
    ]
    if not judged:
        raise UserError(
            f"tune: no trial of {len(ended)} got as far as an evaluation; see"
            f" {os.path.join(ended[0].directory, running.LOG_FILE)}"
        )
    judged.sort(key=lambda pair: pair[0], reverse=order.mode == "max")
    for value, trial in judged[:_SHOWN]:
        call.console.result(
            f"trial {trial.number + 1:>4}  {order.metric} {value:<10.6g}"
            f"  {trial.state.value:<8}  {_shown(trial.parameters)}"
        )
    best = judged[0][1]
    size = best.parameters.get(_BATCH_SIZE)
    call.console.result(
        f"best:       {best.model}\n"
        f"            --model={call.training.model}"
        f" '--hparams={_hparams(call, best.parameters)}'"
        + (f" --batch_size={size}" if size else "")
        + "\n            compare all of them with `monitor`, dashboard HPARAMS"
    )


def run_tune(call: Invocation) -> None:
    """Runs the trials that are not done yet.

    Raises:
      UserError: The flags are wrong, or no trial could be evaluated.
    """
    searched = space.parse(call.tuning.search)
    _check(call, searched)
    evaluation = call.training.evaluation
    order = metric_order.order(
        evaluation.best_metric, evaluation.best_mode, "best_mode"
    )
    suggest = suggesting.suggester(
        call.tuning.method, searched, call.training.seed, order
    )
    open_dataset(call.paths.dataset)
    directory = call.tuning.directory or os.path.join(
        os.path.dirname(call.paths.model), "tune"
    )
    directory = os.path.abspath(os.path.expanduser(directory))
    os.makedirs(directory, exist_ok=True)
    with files.locked(directory):
        _begin(call, directory)
        path = os.path.join(directory, _FLAGS_FILE)
        files.write_atomically(path, call.flagfile)
        ended = _run_all(call, directory, searched, order, suggest)
    _say(call, ended, order)
