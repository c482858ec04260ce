"""Trials NUM-1 and NUM-2: numbers that are none, and labels that are not listed."""

from __future__ import annotations

import itertools
from pathlib import Path

import helpers_training
import numpy as np
import pytest

from pipeline import train, train_plan
from pipeline.dataset import Dataset
from pipeline.flags.input import InputFlags
from pipeline.types import ExitCode, UserError

MODELS = {"linear": "", "dnn": "hidden_units=[4]", "keras_wide_deep": "dropout=0"}
_ROWS = 400
NUMBERS = """
label: {column: y, classes: ["no", "yes"]}
columns:
  x: {%s}
  z: {type: float}
  y: {type: string}
features:
  x: {kind: numeric, use: both}
  z: {kind: numeric}
"""


def _lines(bad: str | None) -> list[str]:
    """Returns rows of which every 50th, 2 %, has `bad` as its x."""
    lines = helpers_training.rows(_ROWS)
    if bad is None:
        return lines
    return [
        ",".join([bad, *line.split(",")[1:]]) if i % 50 == 7 else line
        for i, line in enumerate(lines)
    ]


def _assert_finite(model_dir: Path) -> None:
    steps = helpers_training.checkpoint_steps(model_dir)
    assert steps
    for step in steps:
        saved = helpers_training.variables(model_dir / f"model.ckpt-{step}")
        for name, value in saved.items():
            assert np.isfinite(value).all(), (step, name)


@pytest.mark.parametrize("model", MODELS)
def test_num_1_a_bad_number_that_has_a_default_counts_as_missing(tmp_path, model):
    setting = "type: float, missing: [nan], default: 0"
    dataset = helpers_training.make_dataset(
        tmp_path / "d", NUMBERS % setting, _lines("nan")
    )
    assert dataset.manifest.results["missing_values"] == {"x": 8}
    settings = {"model": model, "hparams": MODELS[model], "max_steps": 60}
    result = helpers_training.train(tmp_path / "m", dataset, **settings)
    clean = helpers_training.make_dataset(
        tmp_path / "clean", NUMBERS % setting, _lines(None)
    )
    wanted = helpers_training.train(tmp_path / "wanted", clean, **settings)
    _assert_finite(tmp_path / "m")
    found = result.manifest.results["metrics"]["accuracy"]
    assert found > wanted.manifest.results["metrics"]["accuracy"] - 0.1


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-inf", "1e400"])
def test_num_1_a_bad_number_without_a_default_is_refused_by_name(tmp_path, bad):
    with pytest.raises(UserError, match="column x") as caught:
        helpers_training.make_dataset(
            tmp_path / "d", NUMBERS % "type: float", _lines(bad)
        )
    assert caught.value.exit_code is ExitCode.BAD_DATA


@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_num_1_a_bad_label_of_a_regression_is_refused_by_name(tmp_path, bad):
    declaration = """
label: {column: x}
columns: {x: {type: float}, z: {type: float}}
features: {z: {kind: numeric}}
"""
    with pytest.raises(UserError, match="column x") as caught:
        helpers_training.make_dataset(tmp_path / "d", declaration, _lines(bad))
    assert caught.value.exit_code is ExitCode.BAD_DATA


_INPUT_FN = """
from pipeline.compat import tf

def input_fn():
    x = tf.concat([tf.random.stateless_normal([98], [1, 2]), [{bad}, {bad}]], 0)
    batch = {{"x": x, "z": x * 0}}, tf.where(x > 0, "yes", "no")
    return tf.data.Dataset.from_tensors(batch).repeat()
"""


_modules = itertools.count()


def _planned(
    directory: Path, monkeypatch, model: str, code: str
) -> tuple[train_plan.Plan, Dataset]:
    """Returns a training, and its dataset, whose training rows come from an input_fn of the user's own."""
    dataset = helpers_training.make_dataset(
        directory / "d", NUMBERS % "type: float", _lines(None)
    )
    # A module is imported once, whatever its text is later.
    name = f"numbers_{next(_modules)}"
    (directory / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(directory))
    plan = train_plan.plan(
        str(directory / "m"),
        helpers_training.settings(model=model, hparams=MODELS[model]),
        dataset,
        InputFlags(input_fn=f"{name}:input_fn"),
    )
    return plan, dataset


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_num_1_no_such_number_reaches_a_checkpoint(tmp_path, monkeypatch, model, bad):
    """Even an input_fn of the user's own, which no rule of ours has seen."""
    code = _INPUT_FN.format(bad=f"float('{bad}')")
    plan, dataset = _planned(tmp_path, monkeypatch, model, code)
    with pytest.raises(UserError, match="NaN|not finite") as caught:
        train.run(plan, dataset, "", helpers_training.QUIET)
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert not (tmp_path / "m" / "manifest.json").exists()
    _assert_finite(tmp_path / "m")


# The declared classes, the type of the column, and what stands in the file.
LABELS = {
    "1 to K": (["0", "1", "2"], "int", ["1", "2", "3"]),
    "-1 and 1": (["0", "1"], "int", ["-1", "1"]),
    "a text that is not listed": (["no", "yes"], "string", ["no", "yes", "maybe"]),
    "floats": (["0", "1"], "int", ["0.5", "1"]),
}


@pytest.mark.parametrize("case", LABELS)
def test_num_2_a_label_that_is_not_listed_is_refused(tmp_path, case):
    classes, kind, values = LABELS[case]
    declaration = f"""
label: {{column: c, classes: {classes}}}
columns: {{x: {{type: float}}, c: {{type: {kind}}}}}
features: {{x: {{kind: numeric}}}}
"""
    lines = helpers_training.rows(_ROWS, words=values)
    with pytest.raises(UserError) as caught:
        helpers_training.make_dataset(tmp_path / "d", declaration, lines)
    assert caught.value.exit_code is ExitCode.BAD_DATA
    said = str(caught.value)
    assert "column c" in said
    assert any(value in said for value in values if value not in classes)
    if case != "floats":
        assert all(name in said for name in classes)


def test_num_2_floats_are_no_classes_of_an_int_column(tmp_path):
    """Refused, as docs/data.md says of whole numbers; nothing is rounded or guessed."""
    declaration = """
label: {column: c, classes: ["0", "1"]}
columns: {x: {type: float}, c: {type: int}}
features: {x: {kind: numeric}}
"""
    lines = helpers_training.rows(_ROWS, words=["0.0", "1.0"])
    with pytest.raises(UserError, match="column c"):
        helpers_training.make_dataset(tmp_path / "d", declaration, lines)


@pytest.mark.parametrize("model", MODELS)
def test_num_2_a_model_that_meets_one_names_it(tmp_path, monkeypatch, model):
    """Where rows do not come from preprocess: premade and custom models alike."""
    code = _INPUT_FN.format(bad="1.0").replace('"no")', '"maybe")')
    plan, dataset = _planned(tmp_path, monkeypatch, model, code)
    wanted = "label y: not one of the classes no, yes: maybe"
    with pytest.raises(UserError, match=wanted) as caught:
        train.run(plan, dataset, "", helpers_training.QUIET)
    assert caught.value.exit_code is ExitCode.BAD_DATA
