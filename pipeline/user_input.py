"""An input_fn of the user's own, found by its name."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from pipeline.types import UserError

# What Estimators give an input_fn that has parameters of these names.
_GIVEN = ("mode", "params", "config", "input_context")


def find(name: str) -> Callable[..., Any]:
    """Returns the function that --input_fn names, so that its errors are one line.

    It may have the parameters that Estimators give: mode, params, config,
    input_context, or none of them.

    Args:
      name: PACKAGE.MODULE:FUNCTION.

    Raises:
      UserError: There is no such module or function, it cannot be imported, or needs
        other arguments.
    """
    module_name, _, path = name.partition(":")
    module = _import(name, module_name)
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            names = [n for n in vars(found) if callable(getattr(found, n))]
            close = difflib.get_close_matches(part, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(
                f"--input_fn={name}: the module {module_name}"
                f" ({getattr(module, '__file__', None)}) has no {part}{hint}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise UserError(
            f"--input_fn={name}: {path} is no function but a {type(found).__name__}"
        )
    return _explained(name, found, _parameters(name, found))


def _import(name: str, module_name: str) -> Any:
    # The console script, unlike python -m, does not look where the user is.
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name + ".").startswith(error.name + "."):
            raise UserError(
                f"--input_fn={name}: there is no module {error.name}; give"
                " PACKAGE.MODULE:FUNCTION of a module in the current directory or on"
                " PYTHONPATH"
            ) from None
        raise UserError(
            f"--input_fn={name}: {module_name} cannot be imported: {error}"
        ) from error
    except Exception as error:
        raise UserError(
            f"--input_fn={name}: {module_name} cannot be imported: {_said(error)}"
        ) from error


def _parameters(name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns which of Estimators' arguments a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise UserError(f"--input_fn={name} is no function: {error}") from None
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if needed and (
            parameter.name not in _GIVEN or parameter.kind is parameter.POSITIONAL_ONLY
        ):
            raise UserError(
                f"--input_fn={name} needs an argument {parameter.name}; Estimators"
                f" give {', '.join(_GIVEN)}, each to a function that has it"
            )
    return tuple(p.name for p in parameters if p.name in _GIVEN)


def _said(error: BaseException) -> str:
    """Returns an error and where it was raised, for one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _explained(
    name: str, function: Callable[..., Any], parameters: tuple[str, ...]
) -> Callable[..., Any]:
    """Returns the function with its errors, and wrong results, as UserErrors."""

    @functools.wraps(function)
    def input_fn(**arguments):
        from pipeline.compat import tf

        try:
            result = function(**arguments)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"--input_fn={name} failed: {_said(error)}") from error
        if isinstance(result, tuple):
            fine = len(result) == 2
        else:
            fine = isinstance(result, (tf.data.Dataset, tf.compat.v1.data.Dataset))
        if not fine:
            raise UserError(
                f"--input_fn={name} returned {_kind(result)}; allowed are a"
                " tf.data.Dataset and a tuple (features, labels)"
            )
        return result

    # Estimators look at the signature to see what to give.
    input_fn.__signature__ = inspect.Signature(
        [
            inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for p in parameters
        ]
    )
    del input_fn.__wrapped__
    return input_fn


def _kind(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {len(result)}"
    return f"a {type(result).__name__}"
