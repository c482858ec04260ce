"""--input_fn=PACKAGE.MODULE:FUNCTION: what is found, and what is said if it is not."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from pipeline import user_input
from pipeline.compat import estimator, tf
from pipeline.flags.input import is_input_fn
from pipeline.types import UserError

TEXT = """
from pipeline.compat import tf

SEEN = []
number = 5

def data():
    return tf.data.Dataset.from_tensors(({"x": tf.constant([[1.0]])}, tf.constant([[2.0]]))).repeat()

def plain():
    return data()

def with_mode(mode):
    SEEN.append(mode)
    return data()

def with_all(mode, params, config, input_context=None):
    SEEN.append((mode, params["p"], config.model_dir is not None, input_context))
    return data()

def tensors(params):
    return {"x": tf.constant([[1.0]])}, tf.constant([[2.0]])

class Group:
    @staticmethod
    def inside():
        return data()

def needs_more(path):
    pass

def by_place(mode, /):
    pass

def raises():
    raise KeyError("nothing here")

def returns_none():
    pass

def returns_three():
    return 1, 2, 3
"""
_numbers = itertools.count()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current directory."""
    name = f"my_inputs_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text(TEXT)
    (tmp_path / f"broken_{name}.py").write_text("import no_such_package\n")
    (tmp_path / f"wrong_{name}.py").write_text("x = 1\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    return name


def _model(directory):
    def model_fn(features, labels, mode, params):
        weight = tf.compat.v1.get_variable("w", initializer=1.0)
        loss = tf.reduce_mean((features["x"] * weight - labels) ** 2)
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        step = tf.compat.v1.train.get_global_step()
        return estimator.EstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, step)
        )

    return estimator.Estimator(model_fn, str(directory), params={"p": 7})


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        ("plain", []),
        ("with_mode", ["train"]),
        ("with_all", [("train", 7, True, None)]),
        ("tensors", []),
        ("Group.inside", []),
    ],
)
def test_an_estimator_gives_it_what_it_takes(module, tmp_path, function, seen):
    found = user_input.find(f"{module}:{function}")
    model = _model(tmp_path / "model")
    model.train(found, steps=2)
    # w = 1 + 0.2 * (2 - w), twice.
    np.testing.assert_allclose(model.get_variable_value("w"), 1.36, rtol=1e-6)
    assert seen == sys.modules[module].SEEN


WRONG = {
    "no module": ("no_such_module:f", ["no module no_such_module"]),
    "no package": ("no_such.module:f", ["no module no_such"]),
    "broken": ("broken_{}:f", ["cannot be imported", "no_such_package"]),
    "fails": ("wrong_{}:f", ["cannot be imported", "ZeroDivisionError", "line 2"]),
    "no function": ("{}:plane", ["has no plane", "did you mean plain?", ".py"]),
    "no attribute": ("{}:Group.outside", ["has no outside"]),
    "no callable": ("{}:number", ["number is no function but a int"]),
    "more arguments": ("{}:needs_more", ["argument path", "mode, params, config"]),
    "by place": ("{}:by_place", ["argument mode"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_line_says_what_is_wrong(module, case):
    name, parts = WRONG[case]
    name = name.format(module)
    with pytest.raises(UserError) as caught:
        user_input.find(name)
    said = str(caught.value)
    assert said.startswith(f"--input_fn={name}")
    assert all(part in said for part in parts), said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        ("raises", ["failed: KeyError", "nothing here", ".py, line"]),
        ("returns_none", ["returned a NoneType", "tf.data.Dataset"]),
        ("returns_three", ["returned a tuple of 3"]),
    ],
)
def test_a_function_that_fails_is_one_line(module, tmp_path, function, parts):
    found = user_input.find(f"{module}:{function}")
    with pytest.raises(UserError) as caught:
        _model(tmp_path / "model").train(found, steps=1)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


@pytest.mark.parametrize("name", ["a.b:c", "a:b.c", "dataset", "direct", "synthetic"])
def test_names_that_may_be(name):
    assert is_input_fn(name)


@pytest.mark.parametrize("name", ["", "a", "a.b", ":f", "a:", "a b:c", "a/b.py:f"])
def test_names_that_may_not_be(name):
    assert not is_input_fn(name)
