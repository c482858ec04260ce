"""The models that `--model=NAME` can name. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.util
import os
import sys
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


class _UserModel(Model):
    """A function of the user's; its name is `module:function`."""

    def builder(self) -> Callable[..., Any]:
        return functools.partial(super().builder(), self.name)


def _of_user(name: str) -> Model:
    """Returns the entry for `module:function`, without importing the module."""
    module, _, function = name.partition(":")
    if not all(map(str.isidentifier, (*module.split("."), function))):
        raise UserError(
            f"--model={name}: a model of your own is given as package.module:function"
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        # The console script, unlike python -m, does not look there.
        sys.path.append(os.getcwd())
    try:
        found = importlib.util.find_spec(module)
    except ImportError:
        found = None
    if found is None:
        raise UserError(
            f"--model={name}: there is no module {module}; it is looked for in the"
            " working directory and in PYTHONPATH"
        )
    return _UserModel(
        name, "a model of your own", "model_fns.user_models", hparams.Free, tuple(Task)
    )


def find(name: str) -> Model:
    """Returns the entry of that name, or of the function `module:function`.

    Raises:
      UserError: There is none; the message lists those there are.
    """
    if ":" in name:
        return _of_user(name)
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"--model={name} is unknown; {hint}there are: {', '.join(MODELS)}"
            ", or package.module:function for one of your own"
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
