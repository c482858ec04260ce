"""Serves the names of `compat_moved` and `compat_contrib` where they used to be.

Nothing is imported before it is asked for: a finder answers for modules, and modules
that are there get a `__getattr__` for the names they lost. What a TensorFlow still has
is left alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

from pipeline import compat_contrib, compat_moved, compat_moved_names
from pipeline.compat_moved import Module, Removed
from pipeline.types import UserError

# tf.compat.v1, as itself, as the v1 of tf.compat.v2, and as a module of its own, which
# `import tensorflow.compat.v1` makes.
_PUBLIC = re.compile(r"^tensorflow\.(_api\.v2\.)?(compat\.v[12]\.(?=compat\.))*")


_ROOTS = ("tensorflow.", "tensorflow_estimator.")


class NoSuccessorError(UserError, AttributeError):
    """A name was used that TensorFlow removed and that nothing replaces.

    It is an AttributeError too, so that `hasattr` says False.
    """


class NoSuccessorModuleError(UserError, ModuleNotFoundError):
    """A module was imported that TensorFlow removed and that nothing replaces.

    It is an ImportError too, so that code with another way for it takes that. It has no
    `name`: `from ... import` would hide an error with the name that it looks for.
    """


@functools.cache
def names_of_modules() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """For each module that lost names: each with its module and name of today."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for row in (*compat_moved_names.NAMES, *compat_contrib.NAMES):
        names = found.setdefault(row.module, {})
        names.update({old: (row.target, new) for old, new in row.renamed})
    return found


def modules() -> tuple[Module, ...]:
    """Modules that are elsewhere now, the more special ones first."""
    rows = (*compat_moved.ESTIMATORS, *compat_moved.MODULES, *compat_contrib.MODULES)
    return tuple(sorted(rows, key=lambda row: -len(row.module)))


def removed() -> tuple[Removed, ...]:
    """What has no successor, the more special ones first."""
    rows = (*compat_moved.REMOVED, *compat_contrib.REMOVED)
    return tuple(sorted(rows, key=lambda row: -len(row.name)))


def _is_at(name: str, root: str) -> bool:
    return name == root or name.startswith(f"{root}.")


def _public_name(module: str) -> str:
    return _PUBLIC.sub("tensorflow.", module)


def _moved(name: str) -> Module | None:
    row = next((row for row in modules() if _is_at(name, row.module)), None)
    if row is not None and row.module != name and name in _packages():
        return None
    return row


@functools.cache
def _packages() -> frozenset[str]:
    """Modules that only held others which moved one by one."""
    rows = [row.module for row in modules()]
    places = [*names_of_modules(), *(parent for parent, _, _ in map(_split, rows))]
    return frozenset(
        ".".join(parts[:length])
        for parts in (place.split(".") for place in places)
        for length in range(2, len(parts) + 1)
    )


def _split(name: str) -> tuple[str, str, str]:
    return name.rpartition(".")


def _no_successor(name: str) -> str:
    row = next((row for row in removed() if _is_at(name, row.name)), None)
    if row is None:
        return f"{name} is not in this TensorFlow, and nothing replaces it"
    return (
        f"TensorFlow {row.gone} removed {name}, and nothing replaces it: {row.instead}"
    )


class _Alias(importlib.abc.Loader):
    """Gives a module that is there under another name."""

    def __init__(self, target: str):
        self._target = target

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        try:
            # The import system takes what it finds here in the place of `module`.
            sys.modules[name] = importlib.import_module(self._target)
        except ModuleNotFoundError as error:
            if error.name is None or not _is_at(self._target, error.name):
                raise
            missing = error.name.partition(".")[0]
            if missing == error.name:
                hint = f"pip install {missing.replace('_', '-')}"
                message = f"{name} is {self._target} today: {hint}"
            else:
                message = _no_successor(name)
            raise NoSuccessorModuleError(message) from None


class _Package(importlib.abc.Loader):
    """Makes a module of nothing but names that moved."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        add_names(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules that moved, and adds names to those that lost some."""

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_ROOTS):
            return None
        lost_names = _public_name(fullname) in names_of_modules()
        moved = _moved(fullname)
        gone = any(_is_at(fullname, row.name) for row in removed())
        if not (lost_names or moved or gone or fullname in _packages()):
            return None
        spec = None
        if moved is None or not _is_alias(fullname.rpartition(".")[0]):
            spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            return _with_names(spec) if lost_names else spec
        if moved is not None:
            name = moved.target + fullname.removeprefix(moved.module)
            return importlib.machinery.ModuleSpec(fullname, _Alias(name))
        if lost_names or fullname in _packages():
            return importlib.machinery.ModuleSpec(fullname, _Package(), is_package=True)
        raise NoSuccessorModuleError(_no_successor(fullname))


def _is_alias(name: str) -> bool:
    """Whether that module is another one, below which nothing may be loaded twice."""
    return sys.modules[name].__name__ != name


def _with_names(
    spec: importlib.machinery.ModuleSpec,
) -> importlib.machinery.ModuleSpec:
    """Lets the module have its lost names as soon as it has been imported."""
    execute = spec.loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        execute(module)
        add_names(module)

    spec.loader.exec_module = exec_module
    return spec


def add_names(module: types.ModuleType) -> None:
    """Lets attributes of a module that it lost be found where they are now."""
    # TensorFlow wraps its public modules; what looks names up is what it wraps.
    inner = vars(module).get("_tfmw_wrapped_module", module)
    name = _public_name(module.__name__)
    moved = names_of_modules().get(name, {})
    own = vars(inner).get("__getattr__")
    is_ours = isinstance(module.__spec__ and module.__spec__.loader, _Package)

    def missing(attribute: str) -> Any:
        if attribute in moved:
            target, new_name = moved[attribute]
            value = _value(f"{target}.{new_name}")
        elif own is not None:
            return own(attribute)
        elif is_ours and not attribute.startswith("__"):
            value = _below(f"{name}.{attribute}")
        else:
            raise AttributeError(
                f"module {name!r} has no attribute {attribute!r}",
                name=attribute,
                obj=module,
            )
        setattr(inner, attribute, value)
        return value

    vars(inner)["__getattr__"] = missing


def _value(path: str) -> Any:
    """What a path such as tensorflow.compat.v1.train.ProfilerHook stands for."""
    package, *parts = path.split(".")
    try:
        value = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        hint = f"pip install {package.replace('_', '-')}"
        raise NoSuccessorError(f"{path} is missing: {hint}") from None
    for number, part in enumerate(parts, start=1):
        module = ".".join([package, *parts[:number]])
        # Not all that is public can be imported, and not all modules are attributes.
        if module not in _packages() and hasattr(value, part):
            value = getattr(value, part)
        else:
            value = importlib.import_module(module)
    return value


def _below(name: str) -> Any:
    """The module of that name, for `tf.contrib.data` without an import of its own."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if isinstance(error, NoSuccessorModuleError):
            raise NoSuccessorError(str(error)) from None
        if error.name != name:
            raise
        raise NoSuccessorError(_no_successor(name)) from None


def install() -> None:
    """Puts the finder first, and adds names to modules that are there already."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorflow") and _public_name(name) in names_of_modules():
            add_names(module)


def load_own() -> None:
    """Loads what comes from this project, which then need not be found any more."""
    for module, names in names_of_modules().items():
        for old, (target, _) in names.items():
            if target.startswith("pipeline."):
                getattr(importlib.import_module(module), old)


def let_keras_be_keras_2() -> None:
    """Lets `import keras` give Keras 2, as it did beside TensorFlow 2.15."""
    if "keras" not in sys.modules:
        sys.meta_path.insert(0, _Keras())


class _Keras(importlib.abc.MetaPathFinder):
    """Finds tf_keras under the name keras."""

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_at(fullname, "keras"):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Alias(f"tf_{fullname}"))
