"""Trials of the training loop, named after their entries."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import helpers_jobs
import helpers_training
import pytest

from export import versions
from input_fns import records
from pipeline import after_evaluation, best, estimators, evaluations, model_dir
from pipeline.dataset import Dataset
from pipeline.types import UserError

LOUD = helpers_training.LOUD


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def flipped(tmp_path_factory) -> Dataset:
    """A dataset with the opposite labels: what was learned is worth nothing there."""
    return helpers_training.make_dataset(
        tmp_path_factory.mktemp("flipped") / "d",
        helpers_training.DECLARATION,
        helpers_training.rows(300, flipped=True),
    )


def _served(directory: Path, name: str) -> list[tuple[int, int]]:
    """Returns the versions of an exporter and the step of each, rising."""
    place = directory / "export" / name
    return [
        (v, json.loads((place / str(v) / "manifest.json").read_text())["results"])
        for v in versions.versions(str(place))
    ]


def _steps(directory: Path, name: str) -> list[int]:
    return [results["global_step"] for _, results in _served(directory, name)]


def test_loop_1_a_rerun_says_what_it_did_and_more_steps_are_exactly_more(
    tmp_path, dataset, flipped, capsys
):
    """LOOP-1, T11"""
    options = {"exporters": ("final",), "checkpoint_steps": 50}
    first = helpers_training.train(tmp_path / "m", dataset, max_steps=100, **options)
    before = helpers_training.contents(tmp_path / "m")

    again = helpers_training.train(
        tmp_path / "m", dataset, LOUD, max_steps=100, **options
    )
    assert again.steps == 0
    assert again.manifest.results["metrics"] == first.manifest.results["metrics"]
    assert "complete at step 100; ran 0 steps" in capsys.readouterr().err
    assert helpers_training.contents(tmp_path / "m") == before

    with pytest.raises(UserError, match=r"another dataset.*--on_change=continue"):
        helpers_training.train(tmp_path / "m", flipped, max_steps=100, **options)
    assert helpers_training.contents(tmp_path / "m") == before

    on_new = helpers_training.train(
        tmp_path / "m", flipped, LOUD, max_steps=100, on_change="continue", **options
    )
    assert on_new.steps == 0
    said = capsys.readouterr().err
    assert "ran 0 steps" in said and "already at step 100" in said
    assert on_new.manifest.results["metrics"]["loss"] > 0
    assert _steps(tmp_path / "m", "final")[0] == 100

    more = helpers_training.train(
        tmp_path / "m", flipped, max_steps=150, on_change="continue", **options
    )
    assert (more.steps, more.manifest.results["global_step"]) == (50, 150)
    assert helpers_training.checkpoint_steps(tmp_path / "m")[-1] == 150


@pytest.mark.parametrize("batch_size", [7, 10, 32])
def test_loop_4_an_evaluation_is_one_pass(tmp_path, batch_size, dataset):
    """LOOP-4: ten rows, whole split, while the training input repeats."""
    ten = helpers_training.make_dataset(
        tmp_path / "ten",
        "split: {by: column, column: c, values: {train: [a], eval: [b], test: [c]}}\n"
        + helpers_training.DECLARATION,
        helpers_training.rows(40, "a")
        + helpers_training.rows(10, "b")
        + helpers_training.rows(1, "c"),
    )
    shards = ten.shards("eval")
    assert shards.rows == 10
    helpers_training.train(tmp_path / "m", ten, max_steps=5)
    model = model_dir.open_model(str(tmp_path / "m"))
    seen = []
    for _ in range(2):
        input_fn = records.eval_input_fn(
            estimators.to_records(shards), model.declaration, batch_size
        )
        predicted = list(estimators.make_estimator(model).predict(input_fn))
        assert len(predicted) == 10
        seen.append(estimators.make_estimator(model).evaluate(input_fn))
    assert seen[0] == seen[1]


def test_loop_5_evaluations_come_when_they_were_asked_for(tmp_path, dataset, capsys):
    """LOOP-5"""
    for name, options in {
        "asked": {"eval_steps": 10, "checkpoint_steps": None},
        "between": {"eval_steps": 10, "checkpoint_steps": 4},
    }.items():
        directory = tmp_path / name
        helpers_training.train(directory, dataset, max_steps=100, **options)
        wanted = list(range(10, 101, 10))
        assert [e.global_step for e in evaluations.read(str(directory))] == wanted
        assert helpers_training.scalar_steps(directory / "eval", "loss") == wanted
    # The checkpoints in between are there, and are not evaluated.
    assert helpers_training.checkpoint_steps(tmp_path / "between") == [92, 96, 100]
    assert "--eval_steps" not in capsys.readouterr().err


def test_loop_5_the_default_is_once_an_epoch_and_at_the_end(tmp_path, dataset):
    epoch = -(-dataset.shards("train").rows // 16)
    helpers_training.train(
        tmp_path / "m", dataset, max_steps=epoch * 2 + 3, checkpoint_steps=None
    )
    evaluated = [e.global_step for e in evaluations.read(str(tmp_path / "m"))]
    assert evaluated == [epoch, 2 * epoch, 2 * epoch + 3]


def test_loop_5_a_cadence_that_never_comes_is_said(tmp_path, dataset, capsys):
    helpers_training.train(tmp_path / "m", dataset, LOUD, max_steps=5, eval_steps=10)
    said = capsys.readouterr().err
    assert "--eval_steps=10 is more than the 5 steps to run: evaluated at the" in said
    assert [e.global_step for e in evaluations.read(str(tmp_path / "m"))] == [5]


def test_a_run_that_was_interrupted_evaluates_at_the_same_steps(tmp_path, dataset):
    """From a checkpoint in between, evaluations stay at multiples."""
    options = {"eval_steps": 10, "checkpoint_steps": 3}
    helpers_training.train(tmp_path / "m", dataset, max_steps=13, **options)
    helpers_training.train(tmp_path / "m", dataset, max_steps=30, **options)
    evaluated = [e.global_step for e in evaluations.read(str(tmp_path / "m"))]
    assert evaluated == [10, 13, 20, 30]


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_loop_6_the_best_export_outlives_restarts(tmp_path, dataset, flipped, metric):
    """LOOP-6, T1: run 2 is worse, run 3 is better. With a foreign file in eval/, and
    with a metric of which more is better."""
    directory = tmp_path / "m"
    options = {"exporters": ("best",), "best_metric": metric, "checkpoint_steps": 10}
    options["hparams"] = "hidden_units=[4],learning_rate=0.02"
    helpers_training.train(directory, dataset, max_steps=20, **options)
    (directory / "eval" / "notes.txt").write_text("nothing")
    first = best.read(str(directory))
    served = _served(directory, "best")
    assert served[-1][1]["global_step"] == first.global_step

    worse = helpers_training.train(
        directory, flipped, max_steps=30, on_change="continue", **options
    )
    assert worse.manifest.results["metrics"][metric] != first.value
    assert best.read(str(directory)) == first
    assert _served(directory, "best") == served
    assert worse.manifest.results["best"]["value"] == first.value

    options["checkpoint_steps"] = 30
    better = helpers_training.train(
        directory, dataset, max_steps=90, on_change="continue", **options
    )
    last = best.read(str(directory))
    if metric == "loss":
        assert last.value < first.value
        assert _steps(directory, "best")[-1] == last.global_step > 30
    assert better.manifest.results["best"]["value"] == last.value


@pytest.mark.parametrize("failing", ["BestExporter", "_Record"])
def test_loop_6_killed_between_evaluation_and_export(
    tmp_path, dataset, failing, monkeypatch
):
    """Whatever was not done is done by the next run."""
    from export import exporters

    directory = tmp_path / "m"
    options = {"exporters": ("best",), "checkpoint_steps": 10}
    kind = getattr(exporters, failing, None) or getattr(after_evaluation, failing)

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(kind, "export", die)
        with pytest.raises(Killed):
            helpers_training.train(directory, dataset, max_steps=10, **options)
    assert best.read(str(directory)).global_step == 10
    assert evaluations.read(str(directory)) == []

    helpers_training.train(directory, dataset, max_steps=30, **options)
    evaluated = [e.global_step for e in evaluations.read(str(directory))]
    assert evaluated == [10, 20, 30]
    assert _steps(directory, "best")[-1] == best.read(str(directory)).global_step


def test_the_best_checkpoint_can_be_evaluated_and_exported(tmp_path, dataset, flipped):
    """The best one is out of reach of the limit on checkpoints."""
    directory = tmp_path / "m"
    options = {"keep_checkpoints": 1, "hparams": "hidden_units=[4],learning_rate=0.02"}
    helpers_training.train(directory, dataset, max_steps=20, **options)
    helpers_training.train(
        directory, flipped, max_steps=40, on_change="continue", **options
    )
    kept = best.read(str(directory))
    assert kept.global_step <= 20
    assert helpers_training.checkpoint_steps(directory) == [40]
    model = model_dir.open_model(str(directory))
    with estimators.pinned_checkpoint(model, "best") as pinned:
        assert pinned.step == kept.global_step
        shards = estimators.to_records(dataset.shards("eval"))
        found = estimators.make_estimator(pinned.model).evaluate(
            records.eval_input_fn(shards, model.declaration, 1024),
            checkpoint_path=pinned.path,
        )
    assert found["loss"] == pytest.approx(kept.value, abs=1e-6)
    with estimators.pinned_checkpoint(model, "40") as pinned:
        assert pinned.step == 40
    with (
        pytest.raises(UserError, match="--checkpoint=7 is not in .* there are 40"),
        estimators.pinned_checkpoint(model, "7"),
    ):
        pass


def test_an_unknown_metric_is_named_and_nothing_is_lost(tmp_path, dataset):
    with pytest.raises(UserError, match="no metric 'f1'.*accuracy") as caught:
        helpers_training.train(tmp_path / "m", dataset, best_metric="f1")
    assert "\n" not in str(caught.value)
    assert helpers_training.train(tmp_path / "m", dataset).steps == 10


def test_settings_of_evaluation_change_no_model(tmp_path, dataset):
    """They may differ between runs that go on."""
    helpers_training.train(tmp_path / "m", dataset, max_steps=10)
    result = helpers_training.train(
        tmp_path / "m", dataset, max_steps=20, eval_steps=5, exporters=("latest",)
    )
    assert result.steps == 10
    assert _steps(tmp_path / "m", "latest") == [15, 20]


def test_export_of_the_best_equals_the_export_command(tmp_path, dataset):
    """Versions of exporters and of `export` have the same signatures."""
    helpers_training.train(tmp_path / "m", dataset, exporters=("final",))
    ((_, while_training),) = _served(tmp_path / "m", "final")
    model = model_dir.open_model(str(tmp_path / "m"))
    from pipeline import export_model

    result = export_model.run(
        str(tmp_path / "export"),
        model,
        dataset,
        dataclasses.replace(helpers_jobs.serving_flags(), checkpoint="best"),
        helpers_jobs.QUIET,
    )
    assert result.manifest.results["signatures"] == while_training["signatures"]
    assert result.manifest.results["verification"]["largest_difference"] < 1e-5
