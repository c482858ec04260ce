"""Strategies on one machine: what they learn and report is what one replica does."""

from __future__ import annotations

import json
import shutil

import helpers_jobs
import numpy as np
import pytest
from helpers_cluster import run, train_flags, weights

from pipeline import evaluate
from pipeline.model_dir import open_model

STRATEGIES = {
    "one_device": ["--strategy=one_device"],
    "mirrored": ["--strategy=mirrored", "--logical_cpus=2"],
    "central_storage": ["--strategy=central_storage", "--logical_cpus=2"],
}


# Without what depends on a replica's own rows: batch normalization and dropout. The
# premade model has two optimizers, FTRL and Adam, the custom one has Adam.
MODELS = {
    "wide_deep": "hidden_units=[8]",
    "keras_wide_deep": "hidden_units=[8],batch_norm=false,dropout=0",
}
CASES = [(name, model) for name in STRATEGIES for model in MODELS]


def _train(job, directory, model, steps, *flags, hparams=None):
    given = train_flags(
        job, directory, model, max_steps=steps, hparams=hparams or MODELS[model]
    )
    done = run("train", *given, *flags)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def _metrics(directory):
    return json.loads((directory / "manifest.json").read_text())["results"]["metrics"]


@pytest.fixture(scope="module")
def one_replica(untrained_job, tmp_path_factory):
    """Returns a model's directories after a step, and after another one, by model.

    Initial weights depend on the graph, so that replicas have to start from a
    checkpoint to be compared.
    """
    found = {}
    for model in MODELS:
        root = tmp_path_factory.mktemp(model)
        _train(untrained_job, root / "first", model, 1)
        shutil.copytree(root / "first", root / "second")
        _train(untrained_job, root / "second", model, 2)
        found[model] = root / "first", root / "second"
    return found


def _assert_evaluated_as_by_one_replica(job, directory):
    """Compares the metrics that train found with those of `evaluate`."""
    manifest = evaluate.run(
        f"{directory}-evaluation",
        open_model(str(directory)),
        job.dataset(),
        "eval",
        helpers_jobs.QUIET,
    )
    found, expected = _metrics(directory), manifest.results["metrics"]
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), CASES)
def test_a_step_on_the_global_batch_is_the_step_of_one_replica(
    untrained_job, one_replica, tmp_path, name, model
):
    first, second = one_replica[model]
    shutil.copytree(first, tmp_path / "model")
    _train(untrained_job, tmp_path / "model", model, 2, *STRATEGIES[name])
    expected, found, before = map(weights, (second, tmp_path / "model", first))
    assert found.keys() == expected.keys()
    moved = 0
    for variable, value in expected.items():
        np.testing.assert_allclose(found[variable], value, atol=1e-5, err_msg=variable)
        moved += not np.array_equal(value, before[variable])
    assert moved > 5
    alone, together = _metrics(second), _metrics(tmp_path / "model")
    assert alone.keys() == together.keys()
    for metric, value in alone.items():
        assert together[metric] == pytest.approx(value, abs=1e-5), metric
    _assert_evaluated_as_by_one_replica(untrained_job, tmp_path / "model")


@pytest.mark.slow
def test_evaluation_is_that_of_one_replica(untrained_job, tmp_path):
    """Also with batch normalization and dropout."""
    flags = STRATEGIES["mirrored"]
    hparams = "hidden_units=[8]"
    directory = tmp_path / "model"
    _train(untrained_job, directory, "keras_wide_deep", 4, *flags, hparams=hparams)
    _assert_evaluated_as_by_one_replica(untrained_job, directory)


@pytest.mark.slow
def test_a_batch_that_does_not_divide_is_refused(untrained_job, tmp_path):
    flags = train_flags(untrained_job, tmp_path / "model", "wide_deep", batch_size=33)
    done = run("train", *flags, *STRATEGIES["mirrored"])
    assert done.returncode == 2
    assert "--batch_size=33" in done.stderr
    assert "Traceback" not in done.stderr
