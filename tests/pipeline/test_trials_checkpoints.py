"""Trials of checkpoints and of vocabularies that grow, named after their entries."""

from __future__ import annotations

import json
from pathlib import Path

import helpers_training
import numpy as np
import pytest

from export import versions
from pipeline import model_dir, warm_start_rows
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.preprocess import constants_files
from pipeline.types import UserError

DECLARATION = helpers_training.DECLARATION
MODELS = ("wide_deep", "keras_wide_deep")


def _make(directory: Path, declaration=DECLARATION, words="abc") -> Dataset:
    return helpers_training.make_dataset(
        directory, declaration, helpers_training.rows(300, words)
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return _make(tmp_path_factory.mktemp("data") / "d")


@pytest.mark.parametrize("on_change", ["stop", "continue"])
def test_ckpt_1_features_that_changed_are_listed(tmp_path, dataset, on_change):
    """CKPT-1: added, removed, numeric -> bucketised; nothing there is touched."""
    helpers_training.train(tmp_path / "m", dataset, exporters=("final",))
    before = helpers_training.contents(tmp_path / "m")
    assert any("saved_model.pb" in name for name in before)
    second = DECLARATION.replace("features:", "  z: {type: float}\nfeatures:")
    second += "  z: {kind: numeric}\n"
    without = DECLARATION.replace("  c: {kind: vocabulary}\n", "")
    cut = DECLARATION.replace(
        "x: {kind: numeric}", "x: {kind: bucketized, boundaries: [0]}"
    )
    for i, (declaration, said) in enumerate(
        [
            (second, "added z"),
            (without, "removed c"),
            (cut, "changed x (numeric for deep -> bucketized"),
        ]
    ):
        other = _make(tmp_path / f"d{i}", declaration)
        with pytest.raises(UserError) as caught:
            helpers_training.plan_and_check(
                tmp_path / "m", other, max_steps=30, on_change=on_change
            )
        assert said in str(caught.value)
        assert "--model_dir" in str(caught.value)
        assert "--on_change=restart" in str(caught.value)
        assert helpers_training.contents(tmp_path / "m") == before


@pytest.mark.parametrize("model", MODELS)
def test_ckpt_2_warm_start(tmp_path, dataset, model, capsys):
    """CKPT-2, T12"""
    hparams = "hidden_units=[4]"
    if model == "wide_deep":
        hparams += ",batch_norm=true"
    options = {"model": model, "hparams": hparams}
    helpers_training.train(tmp_path / "a", dataset, max_steps=50, **options)
    options["warm_start_from"] = str(tmp_path / "a")
    helpers_training.train(
        tmp_path / "b", dataset, Console(0), max_steps=10, seed=9, **options
    )
    log = capsys.readouterr().err
    a = helpers_training.variables(tmp_path / "a")
    begin = helpers_training.variables(tmp_path / "b" / "model.ckpt-0")
    assert begin["global_step"] == 0
    weights = [n for n in a if not n.startswith("training/") and n != "global_step"]
    moving = [n for n in weights if n.endswith(("moving_mean", "moving_variance"))]
    assert len(moving) == 2
    for name in weights:
        np.testing.assert_allclose(begin[name], a[name], atol=1e-7, err_msg=name)
        assert name in log
    assert "taken over: " in log and "steps begin at 0" in log
    fresh = log.split("fresh (not asked for): ")[1].splitlines()[0]
    assert "training/Adam/" in fresh and not any(n in fresh.split(", ") for n in moving)
    report = json.loads((tmp_path / "b" / "warm_start.json").read_text())
    assert set(moving) <= set(report["taken"])
    after = helpers_training.variables(tmp_path / "b")
    assert after["global_step"] == 10
    assert any(np.abs(after[n] - a[n]).max() > 1e-4 for n in weights)

    # A directory with a checkpoint of its own goes on from it, and says so.
    helpers_training.train(
        tmp_path / "b", dataset, Console(0), max_steps=12, seed=9, **options
    )
    said = capsys.readouterr().err
    assert "goes on from step 10" in said and "the warm start is ignored" in said
    assert helpers_training.variables(tmp_path / "b")["global_step"] == 12
    with pytest.raises(UserError, match="a warm start"):
        helpers_training.train(
            tmp_path / "a",
            dataset,
            max_steps=60,
            model=model,
            hparams=hparams,
            warm_start_from=str(tmp_path / "b"),
        )


def test_ckpt_2_the_second_call_of_train_does_not_begin_anew(tmp_path, dataset):
    """T12: one Estimator, trained twice."""
    from pipeline import train_plan, train_spec

    helpers_training.train(tmp_path / "a", dataset, max_steps=20)
    plan = train_plan.plan(
        str(tmp_path / "b"),
        helpers_training.settings(warm_start_from=str(tmp_path / "a")),
        dataset,
    )
    model_dir.write(plan.model)
    job = train_spec.make_job(plan, dataset, 0, helpers_training.QUIET)
    job.trained.train(job.train.input_fn, max_steps=10)
    at_10 = helpers_training.variables(tmp_path / "b")
    job.trained.train(job.train.input_fn, max_steps=11)
    at_11 = helpers_training.variables(tmp_path / "b")
    a = helpers_training.variables(tmp_path / "a")
    assert at_11["global_step"] == 11
    name = "dnn/hiddenlayer_0/kernel"
    step = np.abs(at_11[name] - at_10[name]).max()
    assert step < np.abs(at_11[name] - a[name]).max()


def test_ckpt_2_what_to_take_and_other_names(tmp_path, dataset):
    helpers_training.train(tmp_path / "a", dataset, hparams="hidden_units=[4,4]")
    source = str(tmp_path / "a")
    helpers_training.train(
        tmp_path / "b",
        dataset,
        max_steps=1,
        hparams="hidden_units=[4,4]",
        warm_start_from=f"{source}/model.ckpt-10",
        warm_start_vars="hiddenlayer_1",
    )
    helpers_training.train(
        tmp_path / "c",
        dataset,
        max_steps=1,
        hparams="hidden_units=[4,4,4]",
        warm_start_from=source,
        warm_start_map="dnn/hiddenlayer_1=dnn/hiddenlayer_2",
    )
    at_10 = helpers_training.variables(f"{source}/model.ckpt-10")
    a = helpers_training.variables(source)
    b = helpers_training.variables(tmp_path / "b" / "model.ckpt-0")
    c = helpers_training.variables(tmp_path / "c" / "model.ckpt-0")
    first, second, third = (f"dnn/hiddenlayer_{i}/kernel" for i in range(3))
    assert (b[second] == at_10[second]).all() and (b[first] != at_10[first]).any()
    assert (c[third] == a[second]).all() and (c[first] == a[first]).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"warm_start_from": "{tmp}/none"}, "there is no directory and no checkpoint"),
        ({"warm_start_from": "{tmp}"}, "holds no checkpoint"),
        ({"warm_start_from": "{tmp}/a"}, "is the model directory itself"),
        ({"warm_start_vars": "x"}, "need --warm_start_from"),
    ],
)
def test_warm_starts_that_cannot_be(tmp_path, dataset, changes, said):
    helpers_training.train(tmp_path / "a", dataset, max_steps=1)
    given = {name: text.format(tmp=tmp_path) for name, text in changes.items()}
    with pytest.raises(UserError, match=said):
        helpers_training.train(tmp_path / "a", dataset, **given)


def test_ckpt_3_the_limit_holds_over_restarts_and_when_it_is_lowered(tmp_path, dataset):
    """CKPT-3"""
    directory = tmp_path / "m"
    options = {"checkpoint_steps": 2, "exporters": ("best", "latest")}
    for steps in (10, 20, 30):
        helpers_training.train(
            directory, dataset, max_steps=steps, keep_checkpoints=3, **options
        )
        there = helpers_training.checkpoint_steps(directory)
        assert there == [steps - 4, steps - 2, steps]
        for name in options["exporters"]:
            assert len(versions.versions(str(directory / "export" / name))) <= 3
    helpers_training.train(
        directory,
        dataset,
        max_steps=32,
        keep_checkpoints=1,
        keep_exports=1,
        **options,
    )
    assert helpers_training.checkpoint_steps(directory) == [32]
    for name in options["exporters"]:
        assert len(versions.versions(str(directory / "export" / name))) == 1
    helpers_training.train(
        directory, dataset, max_steps=32, keep_checkpoints=1, **options
    )
    assert helpers_training.checkpoint_steps(directory) == [32]


@pytest.mark.parametrize("model", MODELS)
def test_voc_2_a_vocabulary_that_grew(tmp_path, dataset, model):
    """VOC-2: refused in the same directory; rows are kept by a warm start."""
    declaration = DECLARATION.replace("features:", "  k: {type: string}\nfeatures:")
    declaration += "  e: {kind: vocabulary, column: k, embedding: 3}\n"
    small = _make(tmp_path / "small", declaration)
    # d and e are the most frequent now: ids by count would move all others.
    grown = _make(tmp_path / "grown", declaration, "abcddddeeee")
    helpers_training.train(tmp_path / "m", small, model=model)
    for on_change in ("stop", "continue"):
        with pytest.raises(UserError, match=r"changed c \(.*3 terms -> .*5 terms"):
            helpers_training.plan_and_check(
                tmp_path / "m", grown, model=model, on_change=on_change, max_steps=30
            )
    helpers_training.train(
        tmp_path / "n",
        grown,
        model=model,
        seed=9,
        warm_start_from=str(tmp_path / "m"),
    )
    old = helpers_training.variables(tmp_path / "m")
    new = helpers_training.variables(tmp_path / "n" / "model.ckpt-0")
    terms = [
        constants_files.read_constants(str(tmp_path / d / "inputs")).vocabularies["c"]
        for d in ("m", "n")
    ]
    assert sorted(terms[1][3:]) == [b"d", b"e"] and terms[1][:3] == terms[0]
    tables = [
        n for n in old if n.endswith(("weights", "embeddings")) and "bias" not in n
    ]
    tables = [n for n in tables if not n.startswith("training/")]
    assert len(tables) == 3
    for name in tables:
        assert (len(old[name]), len(new[name])) == (4, 6)
        np.testing.assert_array_equal(new[name][:3], old[name][:3])
        np.testing.assert_array_equal(new[name][5], old[name][3])
        if not ("wide" in name or "linear" in name):  # Those begin as zeros.
            assert (new[name][3] != old[name][3]).any()
    (kernel,) = [
        n for n in old if old[n].shape == (8, 4) and not n.startswith("training/")
    ]
    assert warm_start_rows._FIRST_LAYERS.search(kernel)
    assert new[kernel].shape == (10, 4)
    # c one-hot, e embedded, x: in both orders the one-hot rows come first.
    np.testing.assert_array_equal(new[kernel][:3], old[kernel][:3])
    np.testing.assert_array_equal(new[kernel][5:], old[kernel][3:])


def test_a_damaged_source_is_one_line(tmp_path, dataset):
    helpers_training.train(tmp_path / "a", dataset)
    (data,) = (tmp_path / "a").glob("model.ckpt-20.data-*")
    content = bytearray(data.read_bytes())
    content[-2] ^= 0xFF
    data.write_bytes(content)
    with pytest.raises(UserError, match="model.ckpt-20 is damaged"):
        helpers_training.train(
            tmp_path / "b", dataset, warm_start_from=str(tmp_path / "a")
        )
