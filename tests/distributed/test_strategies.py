"""Strategies on one machine: what they learn and report is what one replica does."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from helpers_cluster import run, train_flags, weights

STRATEGIES = {
    "one_device": ["--strategy=one_device"],
    "mirrored": ["--strategy=mirrored", "--logical_cpus=2"],
    "central_storage": ["--strategy=central_storage", "--logical_cpus=2"],
}


def _train(job, directory, model, steps, *flags):
    done = run("train", *train_flags(job, directory, model, max_steps=steps), *flags)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def _metrics(directory):
    return json.loads((directory / "manifest.json").read_text())["results"]["metrics"]


# It has no batch normalization, which normalises each replica's own rows.
_MODEL = "wide_deep"


@pytest.fixture(scope="module")
def one_replica(untrained_job, tmp_path_factory):
    """Returns a model's directory after a step, and after another one.

    Initial weights depend on the graph, so that replicas have to start from a
    checkpoint to be compared.
    """
    root = tmp_path_factory.mktemp("one_replica")
    _train(untrained_job, root / "first", _MODEL, 1)
    shutil.copytree(root / "first", root / "second")
    _train(untrained_job, root / "second", _MODEL, 2)
    return root / "first", root / "second"


@pytest.mark.slow
@pytest.mark.parametrize("flags", STRATEGIES.values(), ids=STRATEGIES)
def test_a_step_on_the_global_batch_is_the_step_of_one_replica(
    untrained_job, one_replica, tmp_path, flags
):
    first, second = one_replica
    shutil.copytree(first, tmp_path / "model")
    _train(untrained_job, tmp_path / "model", _MODEL, 2, *flags)
    expected, found, before = map(weights, (second, tmp_path / "model", first))
    assert found.keys() == expected.keys()
    moved = 0
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
        moved += not np.array_equal(value, before[name])
    assert moved > 5
    alone, together = _metrics(second), _metrics(tmp_path / "model")
    assert alone.keys() == together.keys()
    for name, value in alone.items():
        assert together[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.slow
def test_evaluation_is_that_of_one_replica(untrained_job, tmp_path):
    """The same checkpoint, evaluated by train under a strategy, and by evaluate."""
    flags = STRATEGIES["mirrored"]
    _train(untrained_job, tmp_path / "model", _MODEL, 4, *flags)
    done = run(
        "evaluate",
        f"--dataset_dir={untrained_job.dataset_dir}",
        f"--model_dir={tmp_path}/model",
        f"--evaluation_dir={tmp_path}/evaluation",
        "--eval_split=eval",
    )
    assert done.returncode == 0, done.stderr
    expected = json.loads((tmp_path / "evaluation" / "metrics.json").read_text())
    found = _metrics(tmp_path / "model")
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name


@pytest.mark.slow
def test_a_batch_that_does_not_divide_is_refused(untrained_job, tmp_path):
    flags = train_flags(untrained_job, tmp_path / "model", _MODEL, batch_size=33)
    done = run("train", *flags, *STRATEGIES["mirrored"])
    assert done.returncode == 2
    assert "--batch_size=33" in done.stderr
    assert "Traceback" not in done.stderr
