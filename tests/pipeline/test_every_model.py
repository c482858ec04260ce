"""Each model of the registry through all stages: train, evaluate, export, predict."""

from __future__ import annotations

import itertools
import json
import math

import helpers_jobs
import pytest

from export import saved_model, versions
from model_fns import registry
from pipeline import evaluate, predict
from pipeline import manifest as manifests
from pipeline.preprocess.sources import registry as sources_registry
from pipeline.types import Task

_TASKS = {
    Task.BINARY: "binary",
    Task.MULTI_CLASS: "multi_class",
    Task.REGRESSION: "regression",
}
_SIGNATURES = {
    "binary": {"classify", "regress"},
    "multi_class": {"classify"},
    "regression": {"regress"},
    "none": set(),
}
_BATCH = 16
"""Small, so that linear_sdca doesn't find too many rows alike."""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """A dataset for each kind of label, and one without."""
    root = tmp_path_factory.mktemp("jobs")
    return {
        task: helpers_jobs.make_job(root / task, task)
        for task in ("none", *_SIGNATURES)
    }


def _cases():
    """Every model; those of several tasks with one, by turns."""
    tasks = itertools.cycle(_TASKS)
    for name, model in registry.MODELS.items():
        if not model.tasks:
            # A label may be declared, and is not looked at.
            yield name, "none"
            yield name, "binary"
        else:
            yield name, _TASKS[next(t for t in tasks if t in model.tasks)]


def _hparams(name: str) -> str:
    small = {"hidden_units": "[8]", "clusters": "3", "vector_width": "2"}
    kind = registry.find(name).hparams
    return ",".join(f"{n}={v}" for n, v in small.items() if hasattr(kind, n))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), _cases())
def test_train_evaluate_export_predict(jobs, tmp_path, name, task):
    job = jobs[task]
    model = helpers_jobs.train_model(
        job, name, hparams=_hparams(name), batch_size=_BATCH
    )
    manifest = evaluate.run(
        str(tmp_path / "evaluation"), model, job.dataset(), "test", helpers_jobs.QUIET
    )
    metrics = manifest.results["metrics"]
    assert metrics["global_step"] == 4
    assert math.isfinite(metrics["average_loss"])

    # Verification compares every row of the split in a fresh process.
    hidden = registry.Lack.EMBEDDINGS not in registry.find(name).lacks
    exported = helpers_jobs.export(job, name, embeddings=hidden)
    results = manifests.read(exported.directory).results
    clusters = not registry.find(name).tasks
    wanted = _SIGNATURES["none" if clusters else task]
    assert set(results["signatures"]) == wanted | {
        saved_model.PREDICT,
        saved_model.SERVING_DEFAULT,
        saved_model.TRANSFORM,
        *([saved_model.EMBEDDINGS] if hidden else []),
    }

    output = tmp_path / "predictions.jsonl"
    done = predict.run(
        sources_registry.open_inputs(helpers_jobs.data_flags(job.input, None)),
        versions.find(str(job.export_dir(name)), None),
        str(output),
        helpers_jobs.QUIET,
    )
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert done.rows == len(answers) == helpers_jobs.ROWS
    if clusters:
        for answer in answers:
            distances = answer["all_distances"]
            assert distances[answer["cluster_index"]] == min(distances)
    else:
        assert ("prediction" if task == "regression" else "class") in answers[0]
