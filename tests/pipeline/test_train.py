"""The train stage: running again, going on, changed settings, broken losses."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import helpers_training
import numpy as np
import pytest

from input_fns import records
from pipeline import estimators, files, model_dir
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.preprocess import constants_files
from pipeline.types import ExitCode, UserError

MODELS = ("wide_deep", "keras_wide_deep")
DECLARATION = helpers_training.DECLARATION
_rows = helpers_training.rows
_make_dataset = helpers_training.make_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _train(directory: Path, dataset: Dataset, console=None, **changes):
    return helpers_training.train(directory, dataset, console or Console(-1), **changes)


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("model", MODELS)
def test_running_again_and_further(tmp_path, dataset, capsys, model):
    first = _train(tmp_path / "m", dataset, model=model)
    assert (first.steps, first.manifest.results["global_step"]) == (20, 20)
    before = _contents(tmp_path / "m")

    again = _train(tmp_path / "m", dataset, Console(0), model=model)
    assert again.steps == 0 and again.manifest == first.manifest
    assert "train: reused" in capsys.readouterr().err
    assert _contents(tmp_path / "m") == before

    further = _train(tmp_path / "m", dataset, model=model, max_steps=35)
    assert (further.steps, further.manifest.results["global_step"]) == (15, 35)
    at_once = _train(tmp_path / "n", dataset, model=model, max_steps=35)
    assert further.manifest.results["metrics"] == pytest.approx(
        at_once.manifest.results["metrics"], abs=1e-6
    )


def test_fewer_steps_than_reached_says_so_and_keeps_the_model(
    tmp_path, dataset, capsys
):
    _train(tmp_path / "m", dataset)
    fewer = _train(tmp_path / "m", dataset, Console(0), max_steps=10)
    assert fewer.steps == 0
    assert fewer.manifest.results["global_step"] == 20
    assert fewer.manifest.results["metrics"]["loss"] > 0
    message = capsys.readouterr().err
    assert "ran 0 steps" in message and "already at step 20" in message


def test_killed_after_training_but_before_the_manifest(tmp_path, dataset):
    first = _train(tmp_path / "m", dataset)
    os.remove(tmp_path / "m" / "manifest.json")
    again = _train(tmp_path / "m", dataset)
    assert again.steps == 0
    assert again.manifest.results == first.manifest.results


def test_epochs_become_steps(tmp_path, dataset):
    rows = dataset.splits["train"].rows
    result = _train(tmp_path / "m", dataset, max_steps=None, epochs=2.0)
    assert result.manifest.results["global_step"] == -(-2 * rows // 16)


def test_other_settings_stop_restart_or_continue(tmp_path, dataset):
    _train(tmp_path / "m", dataset)
    before = _contents(tmp_path / "m")
    with pytest.raises(UserError, match=r"seed 3 -> 4.*--on_change=restart"):
        _train(tmp_path / "m", dataset, seed=4)
    assert _contents(tmp_path / "m") == before

    restarted = _train(tmp_path / "m", dataset, seed=4, on_change="restart")
    assert restarted.steps == 20
    (aside,) = tmp_path.glob("m.old-*")
    assert _contents(aside) == before

    gone_on = _train(
        tmp_path / "m", dataset, seed=5, on_change="continue", max_steps=30
    )
    assert (gone_on.steps, gone_on.manifest.results["global_step"]) == (10, 30)


def test_another_dataset_is_noticed_and_can_be_gone_on_with(tmp_path, dataset):
    other = _make_dataset(tmp_path / "other", DECLARATION, _rows(500))
    _train(tmp_path / "m", dataset)
    with pytest.raises(UserError, match="another dataset"):
        _train(tmp_path / "m", other)
    result = _train(tmp_path / "m", other, on_change="continue", max_steps=30)
    assert result.steps == 10


def test_terms_keep_their_ids_when_new_data_orders_them_otherwise(tmp_path, dataset):
    _train(tmp_path / "m", dataset)
    other = _make_dataset(tmp_path / "other", DECLARATION, _rows(300, "cccccbba"))
    before = constants_files.read_constants(dataset.directory).vocabularies["c"]
    assert constants_files.read_constants(other.directory).vocabularies["c"] != before
    _train(tmp_path / "m", other, on_change="continue", max_steps=30)
    assert (
        model_dir.open_model(str(tmp_path / "m")).constants.vocabularies["c"] == before
    )


def test_a_finished_model_without_its_checkpoints_is_trained_again(tmp_path, dataset):
    first = _train(tmp_path / "m", dataset)
    for path in (tmp_path / "m").glob("*ckpt*"):
        path.unlink()
    (tmp_path / "m" / "checkpoint").unlink()
    again = _train(tmp_path / "m", dataset)
    assert again.steps == 20
    assert again.manifest.results == first.manifest.results


@pytest.mark.parametrize(
    ("declaration", "words", "said"),
    [
        (DECLARATION.replace("  c: {kind: vocabulary}\n", ""), "abc", "removed c"),
        (
            DECLARATION + "  h: {kind: hashed, column: c, buckets: 9}\n",
            "abc",
            "added h",
        ),
        (
            DECLARATION.replace(
                "x: {kind: numeric}", "x: {kind: bucketized, boundaries: [0]}"
            ),
            "abc",
            "changed x (numeric for deep -> bucketized",
        ),
        (
            DECLARATION,
            "abcde",
            "3 terms -> vocabulary for both, oov_buckets 1, 5 terms",
        ),
    ],
)
def test_other_features_cannot_continue(tmp_path, dataset, declaration, words, said):
    _train(tmp_path / "m", dataset)
    before = _contents(tmp_path / "m")
    other = _make_dataset(tmp_path / "other", declaration, _rows(300, words))
    with pytest.raises(UserError) as caught:
        _train(tmp_path / "m", other, on_change="continue", max_steps=30)
    assert said in str(caught.value)
    assert "--on_change=restart" in str(caught.value)
    assert _contents(tmp_path / "m") == before


def test_a_foreign_checkpoint_is_left_alone(tmp_path, dataset):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "checkpoint").write_text("not ours")
    with pytest.raises(UserError, match="did not write"):
        _train(tmp_path / "m", dataset)


def test_a_directory_in_use_is_refused(tmp_path, dataset):
    with (
        files.locked(str(tmp_path / "m")),
        pytest.raises(UserError, match=f"process {os.getpid()}") as caught,
    ):
        _train(tmp_path / "m", dataset)
    assert caught.value.exit_code is ExitCode.LOCKED


@pytest.mark.parametrize("checkpoint_steps", [1, 3])
def test_nan_is_one_line_and_the_last_good_checkpoint_is_usable(
    tmp_path, dataset, checkpoint_steps
):
    """Nothing that is not finite is saved: neither with an evaluation nor between."""
    with pytest.raises(UserError, match="NaN.*learning_rate") as caught:
        _train(
            tmp_path / "m",
            dataset,
            model="keras_wide_deep",
            hparams="learning_rate=1e38,hidden_units=[4]",
            max_steps=200,
            checkpoint_steps=checkpoint_steps,
            eval_steps=3,
            keep_checkpoints=100,
        )
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert not (tmp_path / "m" / "manifest.json").exists()
    steps = helpers_training.checkpoint_steps(tmp_path / "m")
    for step in steps:
        saved = helpers_training.variables(tmp_path / "m" / f"model.ckpt-{step}")
        assert all(np.isfinite(value).all() for value in saved.values())
    model = model_dir.open_model(str(tmp_path / "m"))
    found = estimators.make_estimator(model).evaluate(
        records.eval_input_fn(
            estimators.to_records(dataset.shards("eval")), model.declaration, 100
        )
    )
    assert found["global_step"] == steps[-1]


def test_checkpoints_are_limited_over_restarts(tmp_path, dataset):
    for steps in (3, 6):
        _train(
            tmp_path / "m",
            dataset,
            max_steps=steps,
            checkpoint_steps=1,
            keep_checkpoints=2,
        )
        assert len(list((tmp_path / "m").glob("model.ckpt-*.index"))) == 2


def test_every_checkpoint_is_evaluated(tmp_path, dataset):
    _train(tmp_path / "m", dataset, max_steps=50, checkpoint_steps=10)
    steps = set()
    for path in (tmp_path / "m" / "eval").glob("events.*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            if any(value.tag == "loss" for value in event.summary.value):
                steps.add(event.step)
    assert steps == {10, 20, 30, 40, 50}


def test_a_dataset_without_label_or_eval_rows_is_refused(tmp_path, dataset):
    unlabelled = dataclasses.replace(
        dataset, declaration=dataclasses.replace(dataset.declaration, label=None)
    )
    with pytest.raises(UserError, match="declares no label"):
        _train(tmp_path / "m", unlabelled)
    tiny = _make_dataset(tmp_path / "tiny", DECLARATION, _rows(3))
    with pytest.raises(UserError, match="split has no rows"):
        _train(tmp_path / "m", tiny)
    assert not (tmp_path / "m").exists()
