"""Who may import whom; read from the source, so that nothing slips in unseen."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("pipeline", "input_fns", "model_fns", "export")
TENSORFLOW = ("tensorflow", "keras", "tf_keras", "tensorflow_estimator")
COMPAT = ("pipeline.types", "pipeline.compat")
MAX_LINES = 400

# What a package may import of the project, itself aside.
ALLOWED = {
    "input_fns": COMPAT,
    "model_fns": COMPAT,
    "export": ("input_fns", "model_fns", *COMPAT),
}
# Files that may import TensorFlow without the door to it.
DOORS = (
    "pipeline/compat*.py",
    "export/verify_child.py",
    "export/verify_requests.py",
    "benchmarks/transform.py",
)
BEAM = (
    "pipeline/preprocess/beam_job.py",
    "pipeline/prediction/beam_job.py",
    "benchmarks/beam_rows.py",
    "benchmarks/transform.py",
)


def imported_modules(source: str, path: str) -> Iterator[tuple[int, str]]:
    """Yields line and full name of all that a file imports, wherever it does so.

    Of `from a import b` it yields both a and a.b, since b may be a module.
    """
    package = path.removesuffix(".py").replace("/", ".").split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield node.lineno, module
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            argument = node.args[0]
            if (
                name in ("import_module", "__import__")
                and isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
            ):
                yield node.lineno, argument.value


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == p or module.startswith(f"{p}.") for p in packages)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def violations(source: str, path: str) -> list[str]:
    """Returns the rules that a file breaks, with its lines."""
    found = set()
    own = path.split("/")[0]
    for line, module in imported_modules(source, path):
        if own in ALLOWED and _is_in(module, PACKAGES):
            # The bare `pipeline` of `from pipeline import types` is judged by the name.
            fine = _is_in(module, (own, *ALLOWED[own])) or module == "pipeline"
            if not fine:
                found.add(f"{path}:{line}: {own} may not import {module}")
        if _is_in(module, TENSORFLOW) and not _matches(path, DOORS):
            found.add(f"{path}:{line}: {module} only through pipeline.compat")
        if _is_in(module, ("apache_beam",)) and not _matches(path, BEAM):
            found.add(f"{path}:{line}: {module} only in {', '.join(BEAM)}")
    if own == "pipeline" and _is_early(path):
        found.update(_early_imports(source, path))
    return sorted(found)


def is_too_long(source: str) -> bool:
    return len(source.splitlines()) > MAX_LINES


# What help and checks need: these may load nothing heavy when they are imported.
EARLY = ("types", "files", "manifest", "console", "inputs", "app", "commands")
EARLY += ("environment", "model_dir", "training_checks", "show", "predict", "dataset")
EARLY += ("cluster/config", "cluster/tf_config", "cluster/choice")
EARLY += ("cluster/command", "cluster/launcher")
EARLY += ("checkpoints", "best", "evaluations", "done", "metric_order")
EARLY += ("early_stopping", "train_plan", "warm_start_plan")
EARLY += ("training_commands", "monitor", "tuning/*")
EARLY += ("data_choice", "invocation", "record_cache", "stage_commands")
EARLY += ("retraining/commands", "retraining/night", "retraining/data")
EARLY += ("retraining/status", "retraining/registry", "retraining/lock")
EARLY += ("declaration/*", "flags/*", "preprocess/stage", "serving/server")
EARLY += ("prediction/job_run", "prediction/pieces", "prediction/version")
HEAVY = ("pipeline.compat", "input_fns", *TENSORFLOW)
HEAVY += ("pipeline.preprocess.beam_job", "pipeline.prediction.beam_job")


def _is_early(path: str) -> bool:
    return _matches(path, tuple(f"pipeline/{name}.py" for name in EARLY))


def _early_imports(source: str, path: str) -> Iterator[str]:
    top = ast.Module(
        [
            n
            for n in ast.parse(source).body
            if isinstance(n, (ast.Import, ast.ImportFrom))
        ],
        [],
    )
    for _, module in imported_modules(ast.unparse(top), path):
        if _is_in(module, HEAVY):
            yield f"{path}: loads {module} before it is needed"


def source_files() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for package in (*PACKAGES, "tools", "benchmarks")
        for path in (ROOT / package).rglob("*.py")
    )


@pytest.mark.parametrize("path", source_files())
def test_layers(path):
    assert violations((ROOT / path).read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize("path", source_files())
def test_length(path):
    assert not is_too_long((ROOT / path).read_text(encoding="utf-8"))


def test_what_is_too_long():
    assert is_too_long("\n" * (MAX_LINES + 1))
    assert not is_too_long("\n" * MAX_LINES)


def test_all_packages_are_looked_at():
    assert {path.split("/")[0] for path in source_files()} >= set(PACKAGES)
    in_tests = {p.name for p in (ROOT / "tests").rglob("__init__.py")}
    assert not in_tests, "test folders are no packages"


def test_names_of_test_files_are_unique():
    names = [path.name for path in (ROOT / "tests").rglob("*.py")]
    assert sorted(names) == sorted(set(names))


BROKEN = {
    "input to model": ("input_fns/a.py", "from model_fns import hparams", 1),
    "input to export": ("input_fns/a.py", "import export.verify", 1),
    "input to pipeline": ("input_fns/a.py", "from pipeline.files import read_json", 1),
    "input to pipeline by name": ("input_fns/a.py", "from pipeline import files", 1),
    "model to input": ("model_fns/a.py", "def f():\n  import input_fns.records", 2),
    "model to pipeline": ("model_fns/a.py", "import pipeline.app as app", 1),
    "model, by text": (
        "model_fns/a.py",
        "import importlib\nimportlib.import_module('input_fns.records')",
        2,
    ),
    "export to pipeline": ("export/a.py", "from pipeline import dataset, types", 1),
    "export, relative": ("export/a.py", "from ..pipeline import files", 1),
    "tensorflow": ("pipeline/train.py", "import tensorflow as tf", 1),
    "tensorflow, part": ("export/a.py", "from tensorflow.python import x", 1),
    "keras": ("model_fns/a.py", "class A:\n  def f(self):\n    import keras", 3),
    "tf_keras": ("model_fns/a.py", "import tf_keras", 1),
    "estimator": ("tools/a.py", "import tensorflow_estimator", 1),
    "tensorflow, by text": ("pipeline/a.py", "__import__('tensorflow')", 1),
    "beam": ("pipeline/preprocess/typed.py", "import apache_beam as beam", 1),
    "beam, part": ("pipeline/a.py", "from apache_beam.io import x", 1),
    "early": ("pipeline/app.py", "from pipeline.compat import tf", None),
    "early, by name": ("pipeline/flags/data.py", "from pipeline import compat", None),
    "early, by package": ("pipeline/model_dir.py", "import input_fns.records", None),
}


@pytest.mark.parametrize(("path", "source", "line"), BROKEN.values(), ids=BROKEN)
def test_the_test_sees_each_violation(path, source, line):
    found = violations(source, path)
    assert found
    if line is not None:
        assert all(text.startswith(f"{path}:{line}: ") for text in found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("input_fns/a.py", "from pipeline.types import Column\nimport input_fns.b"),
        ("input_fns/a.py", "from pipeline import types\nfrom . import b"),
        ("model_fns/a.py", "from pipeline.compat import estimator, tf, tf_keras"),
        ("export/a.py", "from input_fns import records\nfrom model_fns import heads"),
        ("pipeline/compat.py", "import tensorflow"),
        ("pipeline/compat_standins.py", "import tf_keras"),
        ("export/verify_child.py", "import tensorflow"),
        ("pipeline/preprocess/beam_job.py", "import apache_beam"),
        ("pipeline/train.py", "from pipeline.compat import tf\nimport input_fns"),
        ("pipeline/app.py", "def f():\n  from pipeline.compat import tf"),
        ("pipeline/a.py", "import tensorflow_metadata\nx = 'import keras'"),
    ],
)
def test_the_test_lets_what_is_right_pass(path, source):
    assert violations(source, path) == []
