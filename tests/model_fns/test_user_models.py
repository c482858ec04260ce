"""Models of the user's own, through real Estimators."""

from __future__ import annotations

import os
import sys

import helpers_models
import numpy as np
import pytest
from helpers_models import evaluate, label_case, predict, train

from model_fns import hparams, registry
from pipeline.compat import estimator
from pipeline.types import UserError

_HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(_HERE)


def _build(name, case, directory, text="hidden_units=[16],rate=0.02"):
    entry = registry.find(name)
    settings = hparams.parse(text, entry.hparams)
    config = estimator.RunConfig(model_dir=str(directory), tf_random_seed=1)
    return entry.builder()(case.declaration, case.constants, settings, config)


@pytest.mark.parametrize(
    "function",
    [
        *("graph_model_fn", "makes_model_fn", "premade", "sequential"),
        *("compiled", "compiled_subclass"),
    ],
)
def test_it_learns(tmp_path, function):
    case = label_case(tmp_path / "data", "classes")
    model = _build(f"user_code:{function}", case, tmp_path / "model")
    train(model, case, 80)
    model = _build(f"user_code:{function}", case, tmp_path / "model")
    train(model, case, 120, start_step=80)
    metrics = evaluate(model, case)
    assert metrics["global_step"] == 120
    assert metrics["accuracy"] > 0.9
    found = predict(model, case)
    assert len(found) == len(case.rows)
    ids = np.array(["CAB".index(row[helpers_models.LABEL]) for row in case.rows])
    if function in ("compiled", "compiled_subclass"):
        predicted = np.array([row["predictions"].argmax() for row in found])
    elif function in ("premade", "sequential"):
        predicted = np.array([row["class_ids"][0] for row in found])
    else:
        predicted = np.array([row["predictions"] for row in found])
    assert np.mean(predicted == ids) == pytest.approx(metrics["accuracy"], abs=1e-6)


_WRONG = {
    "no module": ("nowhere.at_all:f", "there is no module nowhere.at_all"),
    "no function": ("user_code:nothing", "has no function nothing; it has graph_model"),
    "no name": ("user_code:", "given as package.module:function"),
    "nothing": ("user_code:returns_nothing", "it returned NoneType; it should"),
    "wants more": ("user_code:wants_more", "its parameter dataset is unknown"),
    "adamw": ("user_code:with_adamw", "AdamW does not work under an Estimator"),
}


@pytest.mark.parametrize(("name", "said"), _WRONG.values(), ids=_WRONG)
def test_what_is_no_model(tmp_path, name, said):
    case = label_case(tmp_path / "data", "classes")
    with pytest.raises(UserError, match=said):
        _build(name, case, tmp_path / "model")


def test_a_module_that_fails(tmp_path, monkeypatch):
    (tmp_path / "broken_model.py").write_text("import os\nnot_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    case = label_case(tmp_path / "data", "classes")
    with pytest.raises(
        UserError, match=r"importing broken_model failed: .*broken_model.py:2: NameErr"
    ):
        _build("broken_model:f", case, tmp_path / "model")


def test_a_model_fn_that_returns_nothing(tmp_path):
    case = label_case(tmp_path / "data", "classes")
    model = _build("user_code:spec_of_nothing", case, tmp_path / "model")
    with pytest.raises(UserError, match="returned NoneType, not an EstimatorSpec"):
        train(model, case, 1)


def test_the_module_is_not_imported_to_find_it():
    sys.modules.pop("user_code", None)
    registry.find("user_code:compiled")
    assert "user_code" not in sys.modules


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        (
            "a=1,b=0.5,c=true,d=relu,e=[1,2],f=[a,b],g=1e-3,h=-2",
            {
                **{"a": 1, "b": 0.5, "c": True, "d": "relu", "e": (1, 2)},
                **{"f": ("a", "b"), "g": 0.001, "h": -2},
            },
        ),
        ("a=inf,b=[]", {"a": "inf", "b": ()}),
    ],
)
def test_free_hyper_parameters(text, values):
    settings = hparams.parse(text, hparams.Free)
    assert hparams.to_values(settings) == values
    assert hparams.from_values(hparams.Free, values) == settings
    assert {k: type(v) for k, v in settings.values.items()} == {
        k: type(v) for k, v in values.items()
    }


def test_a_free_hyper_parameter_twice():
    with pytest.raises(UserError, match="a stands twice"):
        hparams.parse("a=1,a=2", hparams.Free)
