"""The evaluate stage: the Estimator's own numbers, made anew only when needed."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import helpers_jobs
import numpy as np
import pytest

from input_fns import records
from pipeline import damage, estimators, evaluate
from pipeline import manifest as manifests
from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

MODEL = "keras_wide_deep"


@pytest.fixture
def job(small_job, tmp_path):
    """A copy of the dataset and a model that tests may damage."""
    shutil.copytree(small_job.dataset_dir, tmp_path / "dataset")
    job = helpers_jobs.Job(tmp_path, small_job.input)
    shutil.copytree(small_job.model_dir(MODEL), job.model_dir(MODEL))
    return job


def _evaluate(job, split: str = "test", model: str = MODEL) -> manifests.Manifest:
    return evaluate.run(
        str(job.root / "evaluation"),
        job.model(model),
        job.dataset(),
        split,
        helpers_jobs.QUIET,
    )


def _error(action, *arguments, **keywords) -> UserError:
    with pytest.raises(UserError) as caught:
        action(*arguments, **keywords)
    assert "\n" not in str(caught.value)
    return caught.value


def _set_step(job, step: int) -> None:
    text = f'model_checkpoint_path: "model.ckpt-{step}"\n'
    (job.model_dir(MODEL) / "checkpoint").write_text(text)


def _flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("task", helpers_jobs.TASKS)
def test_metrics_are_those_of_the_estimator(task_jobs, task, tmp_path):
    job, dataset = task_jobs[task], task_jobs[task].dataset()
    model = job.model(MODEL)
    found = evaluate.run(
        str(tmp_path / "evaluation"), model, dataset, "test", helpers_jobs.QUIET
    )
    shards = dataset.shards("test")
    expected = estimators.make_estimator(model).evaluate(
        records.eval_input_fn(estimators.to_records(shards), model.declaration, 1024)
    )
    assert found.results["rows"] == shards.rows
    assert found.results["metrics"] == pytest.approx(expected, abs=1e-6)
    with open(tmp_path / "evaluation" / evaluate.METRICS_FILE) as f:
        assert json.load(f) == found.results["metrics"]


def test_accuracy_counts_every_row_once(small_job, tmp_path):
    """Counted by hand, with batches that do not divide the rows."""
    model, dataset = small_job.model(MODEL), small_job.dataset()
    found = evaluate.run(
        str(tmp_path / "evaluation"), model, dataset, "train", helpers_jobs.QUIET
    )
    shards = dataset.shards("train")
    input_fn = records.eval_input_fn(
        estimators.to_records(shards), model.declaration, 7
    )
    predicted = [
        p["classes"][0] for p in estimators.make_estimator(model).predict(input_fn)
    ]
    labels = [
        tf.train.Example.FromString(r).features.feature["bought"]
        for r in records.serialized_rows(
            estimators.to_records(shards), tuple(model.declaration.columns.values())
        )
    ]
    labels = [label.bytes_list.value[0] for label in labels]
    assert len(labels) == len(predicted) == shards.rows
    accuracy = np.mean(np.array(predicted) == np.array(labels))
    assert found.results["metrics"]["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_nothing_is_done_again(job, monkeypatch):
    first = _evaluate(job)
    monkeypatch.setattr(estimators, "make_estimator", None)
    assert _evaluate(job) == first


def test_another_split_is_evaluated(job):
    first = _evaluate(job, "test")
    second = _evaluate(job, "eval")
    assert second.configuration == {"split": "eval"}
    assert second.results["rows"] != first.results["rows"]
    assert manifests.read(str(job.root / "evaluation")) == second


def test_another_checkpoint_is_evaluated(job):
    first = _evaluate(job)
    _set_step(job, 0)
    second = _evaluate(job)
    assert first.results["metrics"]["global_step"] == 4
    assert second.results["metrics"]["global_step"] == 0
    assert second.results["metrics"]["loss"] != first.results["metrics"]["loss"]


def test_lost_metrics_are_made_again(job):
    first = _evaluate(job)
    (job.root / "evaluation" / evaluate.METRICS_FILE).unlink()
    second = _evaluate(job)
    assert second.results == first.results
    assert (job.root / "evaluation" / evaluate.METRICS_FILE).exists()


def test_an_evaluation_in_use_is_refused(job):
    with evaluate.files.locked(str(job.root / "evaluation")):
        error = _error(_evaluate, job)
    assert error.exit_code is ExitCode.LOCKED


def test_metrics_that_are_no_numbers_are_one_line():
    error = _error(estimators.plain_metrics, {"loss": np.float32("nan")})
    assert str(error).startswith("the metric loss is nan: the model has diverged")
    assert error.exit_code is ExitCode.BAD_DATA


# --- damage ----------------------------------------------------------------------


def test_another_dataset_must_fit_the_model(job, task_jobs):
    error = _error(
        evaluate.run,
        str(job.root / "evaluation"),
        job.model(MODEL),
        task_jobs["regression"].dataset(),
        "test",
        helpers_jobs.QUIET,
    )
    assert "its label is price instead of bought" in str(error)
    assert not (job.root / "evaluation").exists()


def test_a_cut_shard_is_named(job):
    (shard,) = job.dataset_dir.glob("test-*.tfrecord")
    os.truncate(shard, 100)
    error = _error(_evaluate, job)
    assert f"{shard} has 100 bytes" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA


@pytest.mark.parametrize("place", [2, 9, 40, -1])
def test_a_changed_shard_is_named(job, place):
    """In the length, its checksum, the data, and the data's checksum."""
    (shard,) = job.dataset_dir.glob("test-*.tfrecord")
    _flip(shard, place)
    error = _error(_evaluate, job)
    assert f"{shard} is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA
    assert not (job.root / "evaluation").exists()


def test_a_changed_shard_does_not_matter_to_another_split(job):
    (shard,) = job.dataset_dir.glob("eval-*.tfrecord")
    _flip(shard, 40)
    _evaluate(job, "test")


def test_train_names_a_changed_shard(job):
    (shard,) = job.dataset_dir.glob("train-*.tfrecord")
    _flip(shard, 40)
    error = _error(
        helpers_jobs.run_training,
        job.model_dir(MODEL),
        helpers_jobs.training_flags(MODEL, max_steps=20),
        job.dataset(),
    )
    assert f"{shard} is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA


def test_train_names_a_changed_checkpoint(job):
    (data,) = job.model_dir(MODEL).glob("model.ckpt-4.data-*")
    _flip(data, -2)
    error = _error(
        helpers_jobs.run_training,
        job.model_dir(MODEL),
        helpers_jobs.training_flags(MODEL, max_steps=20),
        job.dataset(),
    )
    assert "model.ckpt-4 is damaged" in str(error)


@pytest.mark.parametrize("suffix", ["index", "data-*"])
@pytest.mark.parametrize("size", [None, 0, 100])
def test_a_damaged_checkpoint_is_one_line(job, suffix, size):
    (path,) = job.model_dir(MODEL).glob(f"model.ckpt-4.{suffix}")
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    assert str(job.model_dir(MODEL)) in str(_error(_evaluate, job))


def test_a_changed_checkpoint_is_one_line(job):
    (path,) = job.model_dir(MODEL).glob("model.ckpt-4.data-*")
    _flip(path, -2)
    error = _error(_evaluate, job)
    assert "model.ckpt-4 is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA


def test_errors_that_no_file_explains_stay_as_they_are(small_job):
    checkpoint, _ = estimators.latest_checkpoint(small_job.model(MODEL))
    dataset = small_job.dataset()
    with (
        pytest.raises(tf.errors.DataLossError, match="^other$"),
        damage.explained(dataset, checkpoint),
    ):
        raise tf.errors.DataLossError(None, None, "other")
    with pytest.raises(KeyError), damage.explained(dataset, checkpoint):
        raise KeyError("x")


def test_a_model_that_knows_fewer_labels_is_refused(job):
    model = job.model(MODEL)
    label = dataclasses.replace(model.declaration.label, classes=("nein", "evtl"))
    declaration = dataclasses.replace(model.declaration, label=label)
    error = _error(
        evaluate.run,
        str(job.root / "evaluation"),
        dataclasses.replace(model, declaration=declaration),
        job.dataset(),
        "test",
        helpers_jobs.QUIET,
    )
    assert "its label is not always one of nein, evtl" in str(error)
