"""Runs a program that was written for TensorFlow's own Estimators, unchanged.

The program sees what `python SCRIPT` or `python -m MODULE` would show it, except that
TensorFlow has what `pipeline.compat` restores, from the program's first import of it on.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import signal
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from pipeline import compat_hooks, compat_versions
from pipeline.types import UserError

_PACKAGES = ("pipeline", "input_fns", "model_fns", "export")
# Whatever of these a program imports first, TensorFlow has to be complete before.
_FIRST_IMPORTS = ("tensorflow", "tensorflow_estimator", "keras", "tf_keras")


def run(arguments: Sequence[str]) -> None:
    """Runs a program to its end.

    Args:
      arguments: A script, or "-m" and a module, and the program's own arguments.

    Raises:
      UserError: There is no such program, or TensorFlow is not one that works.
      SystemExit: The program ended with an exit code, or with an error, of which the
        traceback has been shown then.
    """
    if not arguments or arguments[0] == "-m" and len(arguments) == 1:
        raise UserError("exec needs a program: exec SCRIPT [ARGS] or exec -m MODULE")
    as_module = arguments[0] == "-m"
    name, *rest = arguments[1:] if as_module else arguments
    if name.startswith("-"):
        raise UserError(f"exec: {name} stands before the script; flags follow it")
    if not as_module and not os.path.exists(name):
        raise UserError(f"exec: there is no script {name}")

    compat_versions.check_installed()
    compat_versions.choose_keras_2()
    sys.path[0] = os.getcwd() if as_module else _folder(name)
    sys.argv = [name, *rest]
    if as_module and importlib.util.find_spec(name) is None:
        raise UserError(f"exec: there is no module {name}")
    sys.meta_path.insert(0, _FirstImport())
    _make_way()
    _run_as_python_does(_of_module if as_module else _of_script, name)


def _folder(script: str) -> str:
    """Where Python looks for the modules of a script first."""
    path = os.path.realpath(script)
    return path if os.path.isdir(path) else os.path.dirname(path)


class _FirstImport(importlib.abc.MetaPathFinder):
    """Imports `pipeline.compat` as soon as the program imports TensorFlow.

    Not earlier, since programs set variables that TensorFlow reads when imported.
    """

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _FIRST_IMPORTS:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Restoring())


class _Restoring(importlib.abc.Loader):
    """Imports a module in its own way, once all is restored."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system takes what it finds there then in the place of `module`.
        del sys.modules[module.__name__]
        _restore()
        importlib.import_module(module.__name__)


def _restore() -> None:
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _FirstImport)]
    importlib.import_module("pipeline.compat")
    if os.environ.get(compat_versions.LEGACY_KERAS):
        compat_hooks.let_keras_be_keras_2()


def _make_way() -> None:
    """Lets the program import modules of its own that have names of this project's."""
    theirs = [name for name in _PACKAGES if name in sys.modules and _is_theirs(name)]
    if "pipeline" in theirs:
        # All of it that could be imported later must be there before.
        _restore()
        compat_hooks.load_own()
    for module in [m for m in sys.modules if m.partition(".")[0] in theirs]:
        del sys.modules[module]


def _is_theirs(package: str) -> bool:
    found = importlib.machinery.PathFinder.find_spec(package, sys.path)
    if found is None:
        return False
    ours = map(os.path.realpath, sys.modules[package].__path__)
    return list(map(os.path.realpath, found.submodule_search_locations or ())) != list(
        ours
    )


def _of_script(script: str) -> None:
    if not os.path.isfile(script):
        runpy.run_path(script, run_name="__main__")
        return
    script = os.path.abspath(script)
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", script)
    vars(main).update(
        __file__=script, __builtins__=builtins, __cached__=None, __loader__=loader
    )
    # Processes that the program starts find its functions there.
    sys.modules["__main__"] = main
    code = compile(loader.get_data(script), script, "exec", dont_inherit=True)
    exec(code, vars(main))


def _of_module(module: str) -> None:
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run_as_python_does(run_it: Callable[[str], None], name: str) -> None:
    """Shows errors without our own frames, and ends as Python would."""
    try:
        run_it(name)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = error.__traceback__
        while traceback and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        if isinstance(error, KeyboardInterrupt):
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.exit(1)
