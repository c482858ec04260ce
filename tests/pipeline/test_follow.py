"""evaluate --noeval_only_once: ends with the training that it follows (T6)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import helpers_jobs
import helpers_training
import pytest

from pipeline import done, evaluations, follow
from pipeline.dataset import Dataset
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[2]
SECONDS = 240


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _follow(root: Path, dataset: Dataset, seconds: int = SECONDS, capsys=None):
    return follow.run(
        str(root / "evaluation"),
        str(root / "m"),
        dataset,
        helpers_jobs.serving_flags(eval_only_once=False, eval_timeout_secs=seconds),
        helpers_training.LOUD,
    )


def _train_elsewhere(root: Path, dataset: Dataset, *flags: str) -> subprocess.Popen:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pipeline", "train"),
            f"--dataset_dir={dataset.directory}",
            f"--model_dir={root / 'm'}",
            *("--hparams=hidden_units=[4]", "--batch_size=16", "--seed=3"),
            *flags,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_t6_it_ends_where_training_stops_early(tmp_path, dataset, capsys):
    """The evaluator is there first, and max_steps is never reached."""
    training = _train_elsewhere(
        tmp_path,
        dataset,
        "--max_steps=1000000",
        "--eval_steps=5",
        "--keep_checkpoints=1000",
        "--early_stopping_metric=loss",
        "--early_stopping_patience=2",
        "--early_stopping_min_delta=10",
    )
    try:
        manifest = _follow(tmp_path, dataset)
        assert training.wait(SECONDS) == 0
    finally:
        training.kill()
    steps = [e.global_step for e in evaluations.read(str(tmp_path / "m"))]
    assert steps == [5, 10, 15]
    assert manifest.results["metrics"]["global_step"] == 15
    said = capsys.readouterr().err
    for step in steps:
        assert f"evaluate: step {step:,}: loss" in said
    found = helpers_training.scalar_steps(tmp_path / "m" / "eval_test", "loss")
    assert found == steps


def test_it_ends_where_training_has_ended_before(tmp_path, dataset, capsys):
    helpers_training.train(tmp_path / "m", dataset)
    manifest = _follow(tmp_path, dataset)
    assert manifest.results["metrics"]["global_step"] == 20
    said = capsys.readouterr().err
    assert "step 10: loss" in said and "step 20: loss" in said


def test_it_gives_up_in_time(tmp_path, dataset):
    """Where nothing trains, and where a training was killed."""
    with pytest.raises(UserError, match="--eval_timeout_secs=1 .*running") as caught:
        _follow(tmp_path, dataset, 1)
    assert caught.value.exit_code is ExitCode.TIMED_OUT
    helpers_training.train(tmp_path / "m", dataset, max_steps=10)
    done.remove(str(tmp_path / "m"))
    with pytest.raises(UserError, match="of step 10") as caught:
        _follow(tmp_path, dataset, 1)
    assert caught.value.exit_code is ExitCode.TIMED_OUT
    assert (tmp_path / "evaluation" / "metrics.json").exists()


def test_a_failed_training_is_said(tmp_path, dataset):
    helpers_training.train(tmp_path / "m", dataset, max_steps=1)
    done.write(str(tmp_path / "m"), done.Done(1, "the loss became NaN"))
    with pytest.raises(UserError, match="failed: the loss became NaN") as caught:
        _follow(tmp_path, dataset)
    assert caught.value.exit_code is ExitCode.BAD_DATA


def test_a_start_removes_the_marker(tmp_path, dataset):
    helpers_training.train(tmp_path / "m", dataset, max_steps=10)
    assert done.read(str(tmp_path / "m")) == done.Done(10)
    with pytest.raises(UserError):
        helpers_training.train(tmp_path / "m", dataset, max_steps=12, best_metric="f1")
    assert done.read(str(tmp_path / "m")).failure
    helpers_training.train(tmp_path / "m", dataset, max_steps=12)
    assert done.read(str(tmp_path / "m")) == done.Done(12)
