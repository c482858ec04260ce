"""Measures how well the models of the registry predict, beside LightGBM."""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import measure
from benchmarks.measure import Program

LIGHTGBM = "LightGBM"
_BASELINE = "baseline"
_CENSUS = "examples/census"
_FLIGHTS = "examples/flights"
_CENSUS_COLUMNS = (
    "age,workclass,fnlwgt,education,educational-num,marital-status,occupation,"
    "relationship,race,gender,capital-gain,capital-loss,hours-per-week,native-country"
)
_TIMETABLE = "sched_dep_time,sched_arr_time,carrier,origin,dest,distance"


@dataclasses.dataclass(frozen=True)
class Score:
    """How well one trained model predicts the test split.

    Attributes:
      auc: Area under the ROC curve, exact.
      loss: Mean log loss, nats.
      seconds: Wall time of the training.
    """

    auc: float
    loss: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class Task:
    """A data set with the models that are measured on it.

    Attributes:
      name: For people.
      flagfile: The example's.
      models: Registry name to hyper-parameters.
      lightgbm: Name to the columns that LightGBM reads; the first is what the models
        are measured against.
      margin: What the best model's median AUC may be below the first LightGBM's.
      over_baseline: What each model's AUC must at least be above the baseline's.
    """

    name: str
    flagfile: str
    models: Mapping[str, str]
    lightgbm: Mapping[str, str]
    margin: float
    over_baseline: float


_NETWORK = "hidden_units=[64,32],dropout=0.5,l2=0.0001"
CENSUS = Task(
    "Census: income above 50,000 dollars",
    f"{_CENSUS}/census.flags",
    {
        "linear": "",
        "linear_sdca": "",
        "dnn": "",
        "wide_deep": "",
        "keras_wide_deep": "",
        "dcn": "",
        "deepfm": "",
        _BASELINE: "",
    },
    {LIGHTGBM: _CENSUS_COLUMNS},
    0.012,
    0.38,
)
FLIGHTS = Task(
    "Flights: more than 15 minutes late, in the two months after those of training",
    f"{_FLIGHTS}/flights.flags",
    {
        "linear": "",
        "dnn": "hidden_units=[64,32],dropout=0.5",
        "wide_deep": "hidden_units=[64,32],dropout=0.5",
        "keras_wide_deep": _NETWORK,
        "dcn": _NETWORK,
        "deepfm": _NETWORK,
        _BASELINE: "",
    },
    {
        LIGHTGBM: f"month,day,{_TIMETABLE}",
        f"{LIGHTGBM} without month and day": _TIMETABLE,
    },
    0.0,
    0.1,
)


def _preprocess(task: Task, directory: str, *flags: str) -> str:
    """Returns the directory of the task's dataset."""
    dataset = os.path.join(directory, os.path.basename(task.flagfile), "dataset")
    subprocess.run(
        [
            *(sys.executable, "-m", "pipeline", "preprocess"),
            *(f"--flagfile={task.flagfile}", f"--dataset_dir={dataset}", *flags),
        ],
        check=True,
        capture_output=True,
        cwd=measure.ROOT,
    )
    return dataset


def _programs(task: Task, dataset: str, seed: int) -> list[Program]:
    programs = [
        Program(name, "lightgbm_run", (dataset, columns, str(seed)))
        for name, columns in task.lightgbm.items()
    ]
    programs += [
        Program(name, "quality_run", (dataset, task.flagfile, name, hparams, str(seed)))
        for name, hparams in task.models.items()
    ]
    return programs


def _measure(task: Task, dataset: str, runs: int) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for seed in range(1, runs + 1):
        for program in _programs(task, dataset, seed):
            print(f"  seed {seed} of {runs}: {program.name}", file=sys.stderr)
            score = Score(**measure.run_program(program))
            found.setdefault(program.name, []).append(score)
    return found


def median_auc(scores: Sequence[Score]) -> float:
    return statistics.median(score.auc for score in scores)


def _print_table(task: Task, found: Mapping[str, Sequence[Score]]) -> None:
    print(f"\n{task.name}")
    width = max(map(len, found))
    print(
        f"  {'':<{width}}  {'seeds':>5}  {'test AUC':>8}  {'lowest to highest':>17}"
        f"  {'log loss':>8}  {'seconds':>7}"
    )
    for name, scores in found.items():
        aucs = [score.auc for score in scores]
        print(
            f"  {name:<{width}}  {len(scores):>5}  {median_auc(scores):>8.4f}"
            f"  {min(aucs):>8.4f}-{max(aucs):>8.4f}"
            f"  {statistics.median(s.loss for s in scores):>8.4f}"
            f"  {statistics.median(s.seconds for s in scores):>7.1f}"
        )


def verdicts(task: Task, found: Mapping[str, Sequence[Score]]) -> list[str]:
    """Returns lines that say what was wanted, and whether it was met."""
    lines = []
    medians = {name: median_auc(scores) for name, scores in found.items()}
    models = {name: medians[name] for name in task.models if name != _BASELINE}
    best = max(models, key=models.get)
    for place, name in enumerate(task.lightgbm):
        gap = models[best] - medians[name]
        line = f"{best} - {name}: {gap:+.4f}"
        if not place:
            met = "met" if gap >= -task.margin else "MISSED"
            line += f"; wanted {-task.margin:+g} or more: {met}"
        lines.append(line)
    for name, auc in models.items():
        over = auc - medians[_BASELINE]
        if over < task.over_baseline:
            lines.append(
                f"{name} - {_BASELINE}: {over:+.4f}; wanted {task.over_baseline:+g} or"
                " more: MISSED"
            )
    if all(m - medians[_BASELINE] >= task.over_baseline for m in models.values()):
        lines.append(f"every model - {_BASELINE}: {task.over_baseline:+g} or more: met")
    return lines


def run(flights: str | None, runs: int, directory: str) -> None:
    """Prints tables of both data sets.

    Args:
      flights: nycflights13's flights as gzip CSV; without it they are left out.
      runs: Seeds of each model.
      directory: For datasets.
    """
    tasks = [(CENSUS, _preprocess(CENSUS, directory))]
    if flights:
        table = os.path.join(directory, "flights.parquet")
        subprocess.run(
            [sys.executable, f"{_FLIGHTS}/prepare.py", os.path.abspath(flights), table],
            check=True,
            capture_output=True,
            cwd=measure.ROOT,
        )
        tasks.append((FLIGHTS, _preprocess(FLIGHTS, directory, f"--input={table}")))
    else:
        print("\nno --flights=FILE: their quality is not measured")
    for task, dataset in tasks:
        found = _measure(task, dataset, runs)
        _print_table(task, found)
        for line in verdicts(task, found):
            print(f"  {line}")
