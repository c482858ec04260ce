"""Traps of tf.estimator that the training loop guards against, named after them.

T10 and T13 are about models: tests/model_fns.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import helpers_training
import pytest

from export import exporters, versions
from input_fns import records
from pipeline import (
    best,
    checkpoints,
    done,
    early_stopping,
    estimators,
    evaluations,
    model_dir,
)
from pipeline.compat import estimator, tf
from pipeline.dataset import Dataset
from pipeline.flags.evaluation import EvaluationFlags
from pipeline.types import UserError

LOUD = helpers_training.LOUD
# The label is noise at this rate: nothing improves for long.
WILD = {"hparams": "hidden_units=[4],learning_rate=3.0", "checkpoint_steps": 5}
STOPPING = {"early_stopping_metric": "loss", "early_stopping_patience": 2}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _exported(directory: Path, name: str) -> list[int]:
    place = directory / "export" / name
    return [
        json.loads((place / str(v) / "manifest.json").read_text())["results"][
            "global_step"
        ]
        for v in versions.versions(str(place))
    ]


def test_t1_best_exports_are_compared_over_restarts(tmp_path, dataset):
    """Stock BestExporter exports at the first evaluation after any restart."""
    options = {"exporters": ("best",), **WILD, "keep_exports": 9}
    for steps in (20, 40, 60):
        helpers_training.train(tmp_path / "m", dataset, max_steps=steps, **options)
    losses = {
        e.global_step: e.metrics["loss"] for e in evaluations.read(str(tmp_path / "m"))
    }
    wanted = []
    for step, loss in losses.items():
        if loss < min([losses[s] for s in wanted], default=float("inf")):
            wanted.append(step)
    assert _exported(tmp_path / "m", "best") == wanted
    assert len(wanted) < len(losses)
    assert best.read(str(tmp_path / "m")).global_step == wanted[-1]


def test_t2_a_named_eval_spec_changes_nothing(tmp_path, dataset):
    """Stock BestExporter looks for event files in eval/ only."""
    helpers_training.train(tmp_path / "m", dataset, exporters=("best",))
    model = model_dir.open_model(str(tmp_path / "m"))
    shards = estimators.to_records(dataset.shards("eval"))
    written = []
    spec = estimator.EvalSpec(
        records.eval_input_fn(shards, model.declaration, 100),
        steps=None,
        name="named",
        start_delay_secs=0,
        throttle_secs=0,
        exporters=[
            exporters.BestExporter(
                lambda place, path: written.append((place, path)),
                lambda: best.read(model.directory).path,
            )
        ],
    )
    shards = estimators.to_records(dataset.shards("train"))
    train_input = records.train_input_fn(
        shards, model.declaration, records.TrainInput(16, 64, 3, 20)
    )
    estimator.train_and_evaluate(
        estimators.make_estimator(model, save_checkpoints_steps=5),
        estimator.TrainSpec(train_input, 25),
        spec,
    )
    (place, path) = written[-1]
    assert place == str(tmp_path / "m" / "export" / "best")
    assert Path(path).parent == tmp_path / "m" / "best"


def test_t3_the_final_export_comes_after_an_early_stop(tmp_path, dataset, capsys):
    """Stock FinalExporter waits for max_steps. T4: stopping early survives a restart."""
    options = {"exporters": ("final",), **WILD, **STOPPING, "max_steps": 400}
    result = helpers_training.train(tmp_path / "m", dataset, LOUD, **options)
    stopped = result.manifest.results["global_step"]
    assert stopped < 400 and stopped % 5 == 0
    said = capsys.readouterr().err
    assert "train: stopped early: loss has not improved on" in said
    assert "in 2 evaluations (10 steps)" in said
    assert _exported(tmp_path / "m", "final") == [stopped]
    assert best.read(str(tmp_path / "m")).global_step == stopped - 10

    again = helpers_training.train(tmp_path / "m", dataset, **options)
    assert again.steps == 0 and again.manifest == result.manifest
    # Killed before the manifest: the evaluations say once more that it is enough.
    (tmp_path / "m" / "manifest.json").unlink()
    again = helpers_training.train(tmp_path / "m", dataset, **options)
    assert again.steps == 0
    assert again.manifest.results["stopped_early"].startswith("loss has not improved")
    assert _exported(tmp_path / "m", "final") == [stopped]

    # More patience: the evaluations before the restart still count.
    options["early_stopping_patience"] = 3
    further = helpers_training.train(tmp_path / "m", dataset, **options)
    assert further.steps >= 5
    first = evaluations.read(str(tmp_path / "m"))
    rule = early_stopping.rule(
        EvaluationFlags(
            early_stopping_metric="loss",
            early_stopping_patience=3,
        )
    )
    assert rule.reason(first) and not rule.reason(first[:-1])


def test_t3_the_final_export_comes_where_training_was_complete(tmp_path, dataset):
    helpers_training.train(tmp_path / "m", dataset)
    result = helpers_training.train(tmp_path / "m", dataset, exporters=("final",))
    assert result.steps == 0
    assert _exported(tmp_path / "m", "final") == [20]


def test_t5_the_whole_split_is_evaluated_without_delay(tmp_path, dataset):
    """Stock EvalSpec: 100 steps, 120 s late, once in 600 s."""
    from pipeline import train_plan, train_spec

    settings = helpers_training.settings()
    plan = train_plan.plan(str(tmp_path / "m"), settings, dataset)
    spec = train_spec.make_job(plan, dataset, 0, LOUD).evaluation
    assert (spec.steps, spec.start_delay_secs, spec.throttle_secs) == (None, 0, 0)
    with tf.Graph().as_default():
        batches = spec.input_fn().map(lambda features, label: tf.size(label))
        total = batches.reduce(0, lambda a, b: a + b)
        with tf.compat.v1.Session() as session:
            assert session.run(total) == dataset.shards("eval").rows


def test_t7_the_strategy_that_cannot_be_used_is_one_line(tmp_path, dataset):
    """In a process of its own: the strategy connects to its cluster when made."""
    helpers_training.train(tmp_path / "m", dataset, max_steps=1)
    done_ = subprocess.run(
        [sys.executable, "-c", _T7, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done_.returncode == 0, done_.stderr[-3000:]
    (line,) = done_.stdout.splitlines()
    assert "tf.compat.v1.distribute.experimental.ParameterServerStrategy" in line


_T7 = """
import sys
from pipeline import estimators, model_dir
from pipeline.compat import tf
from pipeline.types import UserError

servers = [tf.distribute.Server.create_local_server(start=True) for _ in range(2)]
addresses = [server.target.removeprefix("grpc://") for server in servers]
cluster = tf.train.ClusterSpec({"worker": addresses[:1], "ps": addresses[1:]})
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
)
try:
    estimators.make_estimator(
        model_dir.open_model(sys.argv[1]), train_distribute=strategy
    )
except UserError as error:
    print(error, flush=True)
import os
os._exit(0)  # The servers have no end of their own.
"""


def test_t8_a_checkpoint_that_is_read_stays(tmp_path, dataset):
    """Training that removes the checkpoint meanwhile cannot disturb the reader."""
    helpers_training.train(tmp_path / "m", dataset, max_steps=10)
    model = model_dir.open_model(str(tmp_path / "m"))
    with estimators.pinned_checkpoint(model, "latest") as pinned:
        assert pinned.step == 10
        helpers_training.train(
            tmp_path / "m", dataset, max_steps=20, keep_checkpoints=1
        )
        assert helpers_training.checkpoint_steps(tmp_path / "m") == [20]
        shards = estimators.to_records(dataset.shards("eval"))
        found = estimators.make_estimator(model).evaluate(
            records.eval_input_fn(shards, model.declaration, 100),
            checkpoint_path=pinned.path,
        )
        assert found["global_step"] == 10
    assert list((tmp_path / "m").glob(".pinned*")) == []


def test_t8_a_pin_of_a_dead_process_is_swept(tmp_path, dataset):
    helpers_training.train(tmp_path / "m", dataset, max_steps=1)
    model = model_dir.open_model(str(tmp_path / "m"))
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
    )
    import socket

    left = tmp_path / "m" / f".pinned-{socket.gethostname()}-{dead.stdout.strip()}"
    elsewhere = tmp_path / "m" / ".pinned-another.host-1"
    left.mkdir()
    elsewhere.mkdir()
    with estimators.pinned_checkpoint(model, "latest"):
        assert not left.exists() and elsewhere.exists()


def test_t9_versions_of_any_number_of_digits_are_cleaned_up(tmp_path, dataset):
    place = tmp_path / "m" / "export" / "latest"
    for number in (7, 12345, 99999999999):
        declaration = place / str(number) / versions.DECLARATION_FILE
        declaration.parent.mkdir(parents=True)
        declaration.write_text("columns: {}")
    helpers_training.train(
        tmp_path / "m", dataset, exporters=("latest",), keep_exports=2
    )
    assert versions.versions(str(place)) == [100000000000, 100000000001]
    assert _exported(tmp_path / "m", "latest") == [10, 20]


def test_a_budget_of_time_pauses_and_the_same_command_goes_on(
    tmp_path, dataset, capsys
):
    options = {"max_train_seconds": 1, "max_steps": 100_000, "exporters": ("final",)}
    paused = helpers_training.train(tmp_path / "m", dataset, LOUD, **options)
    reached = paused.manifest.results["global_step"]
    assert 0 < reached < 100_000 and paused.manifest.results["paused"]
    assert "paused after --max_train_seconds=1 at step" in capsys.readouterr().err
    assert checkpoints.listed(str(tmp_path / "m"))[-1].step == reached
    assert not (tmp_path / "m" / "export").exists()
    assert done.read(str(tmp_path / "m")) == done.Done(reached)
    options |= {"max_steps": reached + 3, "max_train_seconds": None}
    again = helpers_training.train(tmp_path / "m", dataset, **options)
    assert again.manifest.results["global_step"] == reached + 3
    assert _exported(tmp_path / "m", "final") == [reached + 3]


def test_checkpoints_by_seconds(tmp_path, dataset):
    helpers_training.train(
        tmp_path / "m",
        dataset,
        # A fast machine must be kept busy for longer than a second.
        max_steps=6000,
        checkpoint_steps=None,
        checkpoint_secs=1,
        eval_steps=6000,
        keep_checkpoints=100,
    )
    there = helpers_training.checkpoint_steps(tmp_path / "m")
    assert len(there) >= 3 and there[-1] == 6000
    assert [e.global_step for e in evaluations.read(str(tmp_path / "m"))] == [6000]


def test_a_failure_is_marked_for_those_who_follow(tmp_path, dataset):
    with pytest.raises(UserError):
        helpers_training.train(tmp_path / "m", dataset, best_metric="f1")
    assert "no metric 'f1'" in done.read(str(tmp_path / "m")).failure
