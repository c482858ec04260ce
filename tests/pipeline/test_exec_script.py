"""Tests of `exec`: real processes, compared with Python's own way to run a program."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _run(directory: pathlib.Path, *words: str) -> subprocess.CompletedProcess:
    unset = ("TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL", "PYTHONPATH")
    env = {k: v for k, v in os.environ.items() if k not in unset}
    return subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env=env | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _exec(directory: pathlib.Path, *words: str) -> subprocess.CompletedProcess:
    # Not from the program's directory, where `-m` would find its modules first.
    return _run(directory, "-m", "pipeline", "exec", *words)


def _same_as_python(directory: pathlib.Path, *words: str) -> None:
    expected = _run(directory, *words)
    found = _exec(directory, *words)
    assert found.stdout == expected.stdout
    assert found.stderr == expected.stderr
    assert found.returncode == expected.returncode


_STATE = """
import sys, helper
print(__name__, __file__, sys.argv, sys.path[0], __package__, __spec__, helper.VALUE)
print(sorted(n for n in vars(sys.modules["__main__"]) if n != "__annotations__"))
print([m for m in sys.modules if m.startswith("tensorflow")])
"""


@pytest.mark.parametrize(
    "code",
    [
        _STATE,
        "import sys\nsys.exit(7)",
        "raise SystemExit('a message')",
        "def f():\n  return 1 / 0\nf()",
        "def f(:\n  pass",
        "raise OSError(13, 'no')",
        "raise BrokenPipeError()",
        "from pipeline.types import UserError\nraise UserError('of the program')",
        "import sys\nsys.excepthook = lambda *error: print('hook', error[1])\n1 / 0",
    ],
)
def test_a_script_runs_as_under_python(tmp_path, code):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text(code)
    (folder / "helper.py").write_text("VALUE = 5")
    _same_as_python(tmp_path, "job/train.py", "--steps=3", "--help", "-h", "x y")


def test_a_module_runs_as_under_python(tmp_path):
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        "import sys\nfrom . import helper\n"
        "print(__name__, __package__, __spec__.name, sys.argv, sys.path[0])\n"
        "sys.exit(helper.VALUE)"
    )
    (package / "helper.py").write_text("VALUE = 5")
    _same_as_python(tmp_path, "-m", "job.train", "--steps=3")


def test_interruption_ends_as_python_does(tmp_path):
    (tmp_path / "train.py").write_text("raise KeyboardInterrupt")
    found = _exec(tmp_path, "train.py")
    assert found.returncode == -signal.SIGINT
    assert found.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "exec_script" not in found.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "exec needs a program"),
        (["-m"], "exec needs a program"),
        (["nothing.py"], "there is no script nothing.py"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
        (["--steps=3", "train.py"], "--steps=3 stands before the script"),
    ],
)
def test_mistakes_are_one_line(tmp_path, words, message):
    found = _exec(tmp_path, *words)
    assert found.returncode == 2
    assert message in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_help_says_how_to_use_it(tmp_path):
    found = _exec(tmp_path, "--help")
    assert "usage: python -m pipeline exec PROGRAM [ARGS]" in found.stdout


_TENSORFLOW = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import {own} as own
print(own.VALUE, "tensorflow" in sys.modules)
{first}
import keras
import tensorflow as tf
import tensorflow.compat.v2 as tf2
from tensorflow.keras import layers
from tensorflow.python.estimator.canned import dnn
assert tf is sys.modules["tensorflow"]
assert tf.keras.Model is keras.Model
assert layers.Dense is keras.layers.Dense
assert tf2.estimator.Estimator is tf.estimator.Estimator
assert tf2.compat.v1.estimator.DNNClassifier is dnn.DNNClassifier
assert tf.estimator.BoostedTreesClassifier
print(keras.__version__.split(".")[0])
raise ValueError("the end")
"""


@pytest.mark.parametrize(
    ("first", "own"),
    [
        ("import tensorflow", "helper"),
        # With a name that is also one of this project's.
        ("from tensorflow_estimator.python.estimator import run_config", "export"),
        ("import keras", "pipeline"),
    ],
)
def test_whatever_is_imported_first_tensorflow_has_estimators(tmp_path, first, own):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text(_TENSORFLOW.format(first=first, own=own))
    (folder / f"{own}.py").write_text("VALUE = 'mine'")
    found = _exec(tmp_path, "job/train.py")
    # TensorFlow comes with the program's import of it, and reads what that has set.
    assert found.stdout == f"mine {own == 'pipeline'}\n2\n", found.stderr
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == "ValueError: the end"
    assert "exec_script" not in found.stderr


def test_a_tensorflow_that_does_not_fit_is_one_line(tmp_path):
    info = tmp_path / "tensorflow-2.99.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.99.0\n"
    )
    (tmp_path / "train.py").write_text("print('started')")
    found = _exec(tmp_path, "train.py")
    assert (found.returncode, found.stdout) == (2, "")
    assert "needs TensorFlow >=2.15.1,<2.22, found 2.99.0" in found.stderr
    assert len(found.stderr.splitlines()) == 1
