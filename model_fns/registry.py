"""The models that `--model=NAME` can name. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from model_fns import hparams
from pipeline.types import Declaration, Task, UserError


@dataclasses.dataclass(frozen=True)
class Model:
    """An entry of the registry.

    Attributes:
      name: What `--model` takes.
      summary: One line for people.
      module: Module whose `build(declaration, constants, hparams, config)` returns
        an Estimator; imported when the model is used.
      hparams: Dataclass of its hyper-parameters.
      tasks: The kinds of label it can predict.
    """

    name: str
    summary: str
    module: str
    hparams: type
    tasks: tuple[Task, ...]

    def builder(self) -> Callable[..., Any]:
        return importlib.import_module(self.module).build


_ENTRIES = (
    Model(
        "wide_deep",
        "premade DNNLinearCombined Estimator over feature columns",
        "model_fns.premade",
        hparams.WideDeep,
        tuple(Task),
    ),
    Model(
        "keras_wide_deep",
        "wide & deep from tf.keras layers with BatchNormalization and Dropout",
        "model_fns.keras_wide_deep",
        hparams.KerasWideDeep,
        tuple(Task),
    ),
)
MODELS: Mapping[str, Model] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Model:
    """Returns the entry of that name.

    Raises:
      UserError: There is none; the message lists those there are.
    """
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"--model={name} is unknown; {hint}there are: {', '.join(MODELS)}"
        )
    return MODELS[name]


def check_task(model: Model, declaration: Declaration, source: str) -> None:
    """Checks that the declaration has a label which the model can predict.

    Args:
      source: Where the declaration comes from, for the message.
    """
    if declaration.label is None:
        raise UserError(
            f"{source} declares no label, so there is nothing to train on: add"
            " `label: {column: NAME}` to it"
        )
    task = declaration.label.task
    if task not in model.tasks:
        allowed = ", ".join(t.value for t in model.tasks)
        raise UserError(
            f"--model={model.name} does {allowed}; the label in {source} asks for"
            f" {task.value}"
        )
