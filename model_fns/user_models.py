"""A model of the user's own: `--model=package.module:function`.

The function is one of these; the names of its parameters tell which:

    model_fn(features, labels, mode, params, config)      an Estimator's model_fn
    make(params, config, declaration, constants)          returns an Estimator, a
                                                          model_fn or a Keras model

Each may leave out parameters that it does not need. A Keras model that is compiled
is trained with its own loss, optimizer and metrics; one that is not returns logits,
for the head of the declared label.

Features are the raw columns, by name, [batch] each: int64, float32 or string, and the
rows' weights under their column's name. Labels are what most losses take: int64 ids
of the declared classes [batch]; int64 [batch, classes] where a row may have several;
float32 [batch] of a regression; a dict of these of several labels.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from model_fns import adapter, compiled, heads, hparams, label_ids
from pipeline.compat import estimator, estimator_v1, tf_keras
from pipeline.types import Constants, Declaration, UserError

_OF_MODEL_FN = ("features", "labels", "mode", "params", "config")
_OF_MAKER = ("params", "config", "declaration", "constants")


def _last_line(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {error}"


def find(name: str, flag: str = "--model") -> Callable:
    """Returns the function that `module:function` names.

    Args:
      flag: The flag that names it, for messages.

    Raises:
      UserError: The module cannot be imported or has no such function.
    """
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UserError(
            f"{flag}={name}: importing {module_name} failed: {_last_line(error)}"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        names = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        raise UserError(
            f"{flag}={name}: {module_name} has no function {attribute}; it has"
            f" {', '.join(names) or 'none'}"
        )
    return function


def accepted(function: Callable, allowed: tuple[str, ...], name: str) -> set[str]:
    """Returns the parameters of a function that we can give it.

    Args:
      name: The flag and what it names, for the message.

    Raises:
      UserError: It needs another.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return set(allowed)
    positional = (p for p in parameters if p.kind is not p.VAR_POSITIONAL)
    unknown = [
        p.name for p in positional if p.name not in allowed and p.default is p.empty
    ]
    if unknown:
        raise UserError(
            f"{name}: its parameter {unknown[0]} is unknown; it may have"
            f" {', '.join(allowed)}"
        )
    return {p.name for p in parameters if p.name in allowed}


def _is_model_fn(function: Callable) -> bool:
    parameters = inspect.signature(function).parameters
    return "features" in parameters and "mode" in parameters


def _with_names(spec: Any, name: str) -> estimator.EstimatorSpec:
    """Checks what a model_fn returned; a prediction without a name gets one."""
    if not isinstance(spec, estimator.EstimatorSpec):
        raise UserError(
            f"--model={name}: its model_fn returned {type(spec).__name__}, not an"
            " EstimatorSpec"
        )
    if spec.predictions is None or isinstance(spec.predictions, Mapping):
        return spec
    return spec._replace(predictions={"predictions": spec.predictions})


def _wrapped(
    model_fn: Callable, name: str, declaration: Declaration, params: Mapping[str, Any]
) -> Callable:
    names = accepted(model_fn, _OF_MODEL_FN, f"--model={name}")

    def wrapped(features, labels, mode, config):
        given = {
            "features": features,
            "labels": label_ids.of_all(labels, declaration),
            "mode": mode,
            "params": dict(params),
            "config": config,
        }
        return _with_names(model_fn(**{k: given[k] for k in names}), name)

    return wrapped


def _of_keras(
    make: Callable[[], tf_keras.Model],
    model: tf_keras.Model,
    name: str,
    declaration: Declaration,
    settings: hparams.Free,
    seed: int,
) -> Callable:
    if getattr(model, "loss", None) is not None:
        model_fn = compiled.model_fn_from_compiled(make, declaration.weight, seed)
        return _wrapped(model_fn, name, declaration, {})
    known = {field.name for field in dataclasses.fields(hparams.Custom)}
    of_training = {k: v for k, v in settings.values.items() if k in known}
    try:
        custom = hparams.Custom(**of_training)
    except (TypeError, ValueError) as error:
        raise UserError(f"--hparams: {error}") from None
    return adapter.model_fn_from_keras(make, custom, heads.head(declaration, custom))


def build(
    name: str,
    declaration: Declaration,
    constants: Constants,
    settings: hparams.Free,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns the Estimator of a user's function.

    Args:
      name: `module:function`.

    Raises:
      UserError: It cannot be found, wants what we do not have, or returns something
        else.
    """
    function = find(name)
    if _is_model_fn(function):
        model_fn = _wrapped(function, name, declaration, settings.values)
        return estimator.Estimator(model_fn, config=config)
    given = {
        "params": dict(settings.values),
        "config": config,
        "declaration": declaration,
        "constants": constants,
    }
    names = accepted(function, _OF_MAKER, f"--model={name}")

    def make():
        return function(**{k: given[k] for k in names})

    made = make()
    if isinstance(made, tf_keras.Model):
        model_fn = _of_keras(
            make, made, name, declaration, settings, config.tf_random_seed
        )
    elif isinstance(made, estimator_v1.Estimator):
        model_fn = _wrapped(made.model_fn, name, declaration, {})
    elif callable(made) and _is_model_fn(made):
        model_fn = _wrapped(made, name, declaration, settings.values)
    else:
        raise UserError(
            f"--model={name}: it returned {type(made).__name__}; it should return an"
            " Estimator, a model_fn or a Keras 2 model (tf_keras; tf.keras is that"
            " here)"
        )
    return estimator.Estimator(model_fn, config=config)
