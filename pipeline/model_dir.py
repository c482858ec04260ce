"""What a model directory holds, so that later stages need nothing else.

training.json     model, hyper-parameters, seed: written before the first step
inputs/           the feature declaration and its constants, likewise
checkpoint, model.ckpt-*, events.*, eval/     the Estimator's own
evaluations.json  metrics of each evaluation
best/             the best checkpoint and its metrics
export/NAME/      versions that the exporter NAME wrote while training
flags.txt         a --flagfile that repeats the run
manifest.json     written when training is complete
DONE              written last; there while no training runs
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from model_fns import hparams as hyper_parameters
from model_fns import registry
from pipeline import declaration as declarations
from pipeline import files
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.preprocess import constants_files
from pipeline.types import Constants, Declaration, UserError

TRAINING_FILE = "training.json"
_INPUTS = "inputs"
_DECLARATION_FILE = "features.yaml"


@dataclasses.dataclass(frozen=True)
class Training:
    """What decides, with the data, what a model learns.

    Attributes:
      model: Name in the registry.
      hparams: The model's hyper-parameters, all of them.
      seed: Seed of the run.
      batch_size: Rows in a step.
      input: What else decides which rows a step sees.
      dataset: Fingerprint of the dataset.
      warm_start: Digest of the checkpoint that training began with, and which of its
        variables; None for fresh weights.
    """

    model: str
    hparams: Mapping[str, Any]
    seed: int
    batch_size: int
    input: Mapping[str, Any]
    dataset: str
    warm_start: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        value = dataclasses.asdict(self)
        value["hparams"] = {
            k: list(v) if isinstance(v, tuple) else v for k, v in self.hparams.items()
        }
        return value


def differences(old: Training, new: Training) -> list[str]:
    """Returns what changed between two trainings, in words."""
    before, after = old.as_json(), new.as_json()
    before.update(before.pop("hparams"))
    after.update(after.pop("hparams"))
    before.update(before.pop("input"))
    after.update(after.pop("input"))
    changed = []
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name):
            continue
        if name == "dataset":
            changed.append("another dataset")
        elif name == "warm_start":
            changed.append(
                "a warm start from other weights"
                if before[name] and after[name]
                else f"{'a' if after[name] else 'no'} warm start"
            )
        else:
            changed.append(f"{name} {before.get(name)} -> {after.get(name)}")
    return changed


@dataclasses.dataclass(frozen=True)
class TrainedModel:
    """A model directory as evaluate and export see it."""

    directory: str
    training: Training
    declaration: Declaration
    constants: Constants

    def settings(self) -> Any:
        """Returns the hyper-parameters as the model's dataclass."""
        kind = registry.find(self.training.model).hparams
        values = {
            k: tuple(v) if isinstance(v, list) else v
            for k, v in self.training.hparams.items()
        }
        try:
            return hyper_parameters.from_values(kind, values)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.directory}: trained with hyper-parameters that"
                f" {self.training.model} no longer takes ({error}); train again"
            ) from None


def parse_hparams(model: str, text: str) -> dict[str, Any]:
    """Returns a model's hyper-parameters, defaults included, as plain values."""
    parsed = hyper_parameters.parse(text, registry.find(model).hparams)
    return hyper_parameters.to_values(parsed)


def asked_training(
    settings: TrainingFlags,
    dataset: str,
    reading: InputFlags = DEFAULT_INPUT,
    warm_start: Mapping[str, Any] | None = None,
) -> Training:
    """Returns the training that the flags ask for.

    Args:
      settings: The training flags.
      dataset: Fingerprint of the dataset.
      reading: The input flags.
      warm_start: What it begins with, if with anything.
    """
    return Training(
        model=settings.model,
        hparams=parse_hparams(settings.model, settings.hparams),
        seed=settings.seed,
        batch_size=settings.batch_size,
        input=reading.deciding(),
        dataset=dataset,
        warm_start=warm_start,
    )


def read_training(directory: str) -> Training | None:
    """Returns what a model directory was or is being trained with, or None."""
    path = os.path.join(directory, TRAINING_FILE)
    if not os.path.exists(path):
        return None
    # A directory of an earlier version lacks what was added since, with a default.
    values = files.read_fields(path, Training, objects=("hparams", "input"))
    return Training(**values)


def write(model: TrainedModel) -> None:
    """Writes what belongs into a model directory before the first step."""
    os.makedirs(model.directory, exist_ok=True)
    with files.staged_directory(os.path.join(model.directory, _INPUTS)) as inputs:
        files.write_atomically(
            os.path.join(inputs, _DECLARATION_FILE),
            declarations.dump(model.declaration),
        )
        constants_files.write_constants(inputs, model.constants)
    files.write_json(
        os.path.join(model.directory, TRAINING_FILE), model.training.as_json()
    )


def has_checkpoint(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, "checkpoint"))


def open_model(directory: str) -> TrainedModel:
    """Opens a model directory that holds at least one checkpoint.

    Raises:
      UserError: There is none.
    """
    training = read_training(directory)
    if training is None or not has_checkpoint(directory):
        raise UserError(
            f"--model_dir: {directory} holds no trained model; run train first"
        )
    inputs = os.path.join(directory, _INPUTS)
    return TrainedModel(
        directory,
        training,
        declarations.load(os.path.join(inputs, _DECLARATION_FILE)),
        constants_files.read_constants(inputs),
    )
