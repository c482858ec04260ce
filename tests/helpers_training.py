"""A small dataset that is quick to train on, and trainings of it."""

from __future__ import annotations

import csv
import dataclasses
import random
from pathlib import Path

import helpers_jobs

from pipeline import train_plan, training_checks
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.dataset import Dataset, open_dataset
from pipeline.flags.evaluation import EvaluationFlags
from pipeline.flags.training import TrainingFlags
from pipeline.flags.warm_start import WarmStartFlags
from pipeline.preprocess import stage
from pipeline.train import TrainResult

DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
columns:
  x: {type: float}
  c: {type: string}
  y: {type: string}
features:
  x: {kind: numeric}
  c: {kind: vocabulary}
"""
QUIET = Console(-1)
LOUD = Console(0)


def rows(count: int, words: str = "abc", flipped: bool = False) -> list[str]:
    """Returns lines of x,c,y,z,k with a label y that can be learned, or its opposite.

    z repeats x and k repeats c, for declarations with more features.
    """
    draw = random.Random(7)
    found = []
    for _ in range(count):
        x = draw.gauss(0, 1)
        word = draw.choice(words)
        yes = (x + (word == "a") > 0) != flipped
        found.append(f"{x:.4f},{word},{'yes' if yes else 'no'},{x:.4f},{word}")
    return found


def make_dataset(directory: Path, declaration: str, lines: list[str]) -> Dataset:
    directory.mkdir(parents=True)
    features = directory / "features.yaml"
    features.write_text(declaration, encoding="utf-8")
    path = directory / "a.csv"
    helpers_jobs.write_csv(path, ("x", "c", "y", "z", "k"), csv.reader(lines))
    settings = helpers_jobs.data_flags(path, features)
    dataset = str(directory / "dataset")
    stage.run(dataset, stage.plan(settings), QUIET)
    return open_dataset(dataset)


def small_dataset(directory: Path) -> Dataset:
    return make_dataset(directory / "d", DECLARATION, rows(300))


def settings(**changes) -> TrainingFlags:
    """Returns flags; names of the evaluation and warm start flags may be among them."""
    values = {
        "hparams": "hidden_units=[4]",
        "batch_size": 16,
        "max_steps": 20,
        "seed": 3,
        "checkpoint_steps": 10,
        "summary_steps": 10,
        **changes,
    }
    model = values.pop("model", "wide_deep")
    renames = {"warm_start_from": "source", "warm_start_vars": "variables"}
    values = {renames.get(name, name): value for name, value in values.items()}
    if "warm_start_map" in values:
        pairs = values.pop("warm_start_map").split(",")
        values["renamed"] = tuple(tuple(pair.split("=")) for pair in pairs)
    for group, kind in (
        ("evaluation", EvaluationFlags),
        ("warm_start", WarmStartFlags),
    ):
        names = {field.name for field in dataclasses.fields(kind)}
        given = {name: values.pop(name) for name in names & values.keys()}
        values[group] = kind(**given)
    return helpers_jobs.training_flags(model, **values)


def train(
    directory: Path, dataset: Dataset, console: Console = QUIET, **changes
) -> TrainResult:
    return helpers_jobs.run_training(directory, settings(**changes), dataset, console)


def plan_and_check(directory: Path, dataset: Dataset, **changes) -> None:
    """Makes the checks of the train command that need no TensorFlow."""
    given = settings(**changes)
    plan = train_plan.plan(str(directory), given, dataset)
    if not training_checks.must_restart(
        plan.model.training, given, str(directory), plan.model
    ):
        training_checks.check_same_structure(plan.model)


def checkpoint_steps(directory: Path) -> list[int]:
    """Returns the steps of the checkpoints whose files are there."""
    names = [path.name for path in directory.glob("model.ckpt-*.index")]
    return sorted(int(name.split("-")[1].split(".")[0]) for name in names)


def variables(checkpoint) -> dict:
    """Returns all variables of a checkpoint (a path prefix or a directory)."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def events(directory: Path) -> list:
    """Returns the events of all files in a directory, in file order."""
    return [
        event
        for path in sorted(directory.glob("events.*"))
        for event in tf.compat.v1.train.summary_iterator(str(path))
    ]


def scalar_steps(directory: Path, tag: str) -> list[int]:
    """Returns the steps at which a scalar was written, in file order."""
    return [
        event.step
        for event in events(directory)
        for value in event.summary.value
        if value.tag == tag
    ]


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
