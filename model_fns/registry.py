"""The models that `--model=NAME` can name. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from model_fns import hparams, premade_hparams, tabular_hparams
from pipeline.types import Declaration, Task, UserError


class Lack(enum.Enum):
    """What an export of a model may lack, and why; known without a look at its graph."""

    FORMATS = (
        "formats",
        "reads feature columns, whose lookups in sparse tensors other formats do not"
        " have; models from layers, e.g. --model=keras_wide_deep, can be converted",
    )
    EMBEDDINGS = (
        "export_embeddings",
        "has no hidden layer, whose values they would be",
    )


@dataclasses.dataclass(frozen=True)
class Model:
    """An entry of the registry.

    Attributes:
      name: What `--model` takes.
      summary: One line for people.
      builder_path: `module:function`, which takes (declaration, constants, settings,
        config) and returns an Estimator; imported when the model is used.
      hparams: Dataclass of its hyper-parameters.
      tasks: The kinds of label it can predict; none where it learns without a label.
      lacks: What of `Lack` its exports cannot have.
    """

    name: str
    summary: str
    builder_path: str
    hparams: type
    tasks: tuple[Task, ...]
    lacks: tuple[Lack, ...] = ()

    def builder(self) -> Callable[..., Any]:
        module, _, function = self.builder_path.partition(":")
        return getattr(importlib.import_module(module), function)

    def build(self, declaration, constants, settings, config) -> Any:
        """Returns the Estimator."""
        return self.builder()(declaration, constants, settings, config)

    @property
    def does(self) -> str:
        """What it can predict, for people."""
        if not self.tasks:
            return "clustering, without a label"
        return ", ".join(task.value for task in self.tasks)


_NEITHER = (Lack.FORMATS, Lack.EMBEDDINGS)
_ENTRIES = (
    Model(
        "linear",
        "premade linear model over feature columns",
        "model_fns.premade:build_linear",
        premade_hparams.Linear,
        tuple(Task),
        _NEITHER,
    ),
    Model(
        "linear_sdca",
        "premade linear model, trained by stochastic dual coordinate ascent",
        "model_fns.linear_sdca:build",
        premade_hparams.LinearSdca,
        (Task.BINARY, Task.REGRESSION),
        _NEITHER,
    ),
    Model(
        "dnn",
        "premade network over feature columns",
        "model_fns.premade:build_dnn",
        premade_hparams.Dnn,
        tuple(Task),
        (Lack.FORMATS,),
    ),
    Model(
        "wide_deep",
        "premade linear model and network (DNNLinearCombined) over feature columns",
        "model_fns.premade:build_wide_deep",
        premade_hparams.WideDeep,
        tuple(Task),
        (Lack.FORMATS,),
    ),
    Model(
        "baseline",
        "premade baseline: the mean of the labels, whatever the features",
        "model_fns.premade:build_baseline",
        premade_hparams.Baseline,
        tuple(Task),
        _NEITHER,
    ),
    Model(
        "kmeans",
        "premade mini-batch k-means over feature columns",
        "model_fns.kmeans:build",
        premade_hparams.KMeans,
        (),
        _NEITHER,
    ),
    Model(
        "keras_wide_deep",
        "wide & deep from tf.keras layers",
        "model_fns.keras_wide_deep:build",
        tabular_hparams.Network,
        tuple(Task),
    ),
    Model(
        "dcn",
        "deep & cross network (DCN-v2) from tf.keras layers",
        "model_fns.dcn:build",
        tabular_hparams.Dcn,
        tuple(Task),
    ),
    Model(
        "deepfm",
        "factorisation machine with a network (DeepFM) from tf.keras layers",
        "model_fns.deepfm:build",
        tabular_hparams.DeepFm,
        tuple(Task),
    ),
)
MODELS: Mapping[str, Model] = {entry.name: entry for entry in _ENTRIES}


class _UserModel(Model):
    """A function of the user's; its name is `module:function`."""

    def builder(self) -> Callable[..., Any]:
        return functools.partial(super().builder(), self.name)


def _of_user(name: str, given_as: str) -> Model:
    """Returns the entry for `module:function`, without importing the module."""
    module, _, function = name.partition(":")
    if not all(map(str.isidentifier, (*module.split("."), function))):
        raise UserError(
            f"{given_as}{name}: a model of your own is given as package.module:function"
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
            f"{given_as}{name}: there is no module {module}; it is looked for in the"
            " working directory and in PYTHONPATH"
        )
    return _UserModel(
        name,
        "a model of your own",
        "model_fns.user_models:build",
        hparams.Free,
        tuple(Task),
    )


def find(name: str, given_as: str = "--model=") -> Model:
    """Returns the entry of that name, or of the function `module:function`.

    Args:
      name: The name.
      given_as: What stood before it, for the message.

    Raises:
      UserError: There is none; the message lists those there are.
    """
    if ":" in name:
        return _of_user(name, given_as)
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"{given_as}{name} is unknown; {hint}there are: {', '.join(MODELS)}"
            ", or package.module:function for one of your own"
        )
    return MODELS[name]


def check_export(model: Model, formats: Sequence[str], embeddings: bool) -> None:
    """Checks that a model's export can have what flags ask for.

    Of a model of the user's own its graph tells it, later.

    Raises:
      UserError: It cannot; the message says why.
    """
    asked = {Lack.FORMATS: bool(formats), Lack.EMBEDDINGS: embeddings}
    for lack in model.lacks:
        if asked[lack]:
            flag, reason = lack.value
            raise UserError(
                f"--{flag}: --model={model.name} {reason}; leave the flag out"
            )


def check_task(model: Model, declaration: Declaration, source: str) -> None:
    """Checks that the declaration has a label which the model can predict.

    A model that learns without a label takes any declaration.

    Args:
      source: Where the declaration comes from, for the message.
    """
    if not model.tasks:
        return
    if declaration.label is None:
        raise UserError(
            f"{source} declares no label, so there is nothing to train on: add"
            " `label: {column: NAME}` to it, or take --model=kmeans"
        )
    task = declaration.label.task
    if task not in model.tasks:
        raise UserError(
            f"--model={model.name} does {model.does}; the label in {source} asks for"
            f" {task.value}"
        )
