"""Strategies and clusters predict the Census as one machine does, and are exported."""

from __future__ import annotations

import json
from pathlib import Path

import helpers_jobs
import pytest
from helpers_cluster import processes_of, run

from pipeline import evaluate, export_model
from pipeline.dataset import Dataset, open_dataset
from pipeline.flags.exporting import ExportFlags
from pipeline.model_dir import open_model

_STEPS = 300
_DIFFERENCE = 0.005
# As the operator or a user starts them; what stands before the flags of train.
RUNS = {
    "mirrored": (["train"], ["--strategy=mirrored", "--logical_cpus=2"]),
    "chief and worker in step": (["cluster", "--workers=1", "--", "train"], []),
    "two workers in step": (
        ["cluster", "--nochief", "--workers=2", "--", "train"],
        [],
    ),
    "parameter server": (
        ["cluster", "--workers=1", "--ps=1", "--evaluator", "--", "train"],
        [],
    ),
}
CASES = [(name, "wide_deep") for name in RUNS]
CASES += [(name, "keras_wide_deep") for name in ("mirrored", "two workers in step")]
CASES += [("parameter server", "keras_wide_deep")]


@pytest.fixture(scope="module")
def census(tmp_path_factory) -> Dataset:
    directory = tmp_path_factory.mktemp("census") / "dataset"
    done = run("preprocess", *_flags(), f"--dataset_dir={directory}")
    assert done.returncode == 0, done.stderr[-3000:]
    return open_dataset(str(directory))


def _flags() -> list[str]:
    return ["--flagfile=examples/census/census.flags"]


def _train(way, census: Dataset, directory: Path, model: str) -> None:
    """Trains so many steps, whatever the way."""
    before, after = way
    done = run(
        *before,
        *_flags(),
        f"--dataset_dir={census.directory}",
        f"--model_dir={directory}",
        f"--model={model}",
        f"--max_steps={_STEPS}",
        f"--eval_steps={_STEPS}",
        *after,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert processes_of(directory) == []


def _metrics(census: Dataset, directory: Path, split: str) -> dict[str, float]:
    """Returns what one replica says of the last checkpoint."""
    manifest = evaluate.run(
        f"{directory}-{split}",
        open_model(str(directory)),
        census,
        split,
        helpers_jobs.QUIET,
    )
    assert manifest.results["rows"] > 4_000
    return manifest.results["metrics"]


@pytest.fixture(scope="module")
def single_machine(census, tmp_path_factory) -> dict[str, float]:
    """Returns the AUC that one machine reaches, by model."""
    found = {}
    for model in helpers_jobs.MODELS:
        directory = tmp_path_factory.mktemp("alone") / model
        _train((["train"], []), census, directory, model)
        found[model] = _metrics(census, directory, "test")["auc"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), CASES)
def test_the_quality_of_one_machine_and_a_verified_export(
    census, single_machine, tmp_path, name, model
):
    directory = tmp_path / "model"
    _train(RUNS[name], census, directory, model)
    results = json.loads((directory / "manifest.json").read_text())["results"]
    # Up to one beyond for each worker of a parameter server.
    assert _STEPS <= results["global_step"] <= _STEPS + 2
    assert results["metrics"] == pytest.approx(
        _metrics(census, directory, "eval"), abs=1e-6
    )
    auc = _metrics(census, directory, "test")["auc"]
    print(f"{name}, {model}: AUC {auc:.4f}, alone {single_machine[model]:.4f}")
    assert auc > 0.9
    assert auc == pytest.approx(single_machine[model], abs=_DIFFERENCE)
    # Loaded in a fresh process, and compared with Estimator.predict on every row.
    exported = export_model.run(
        str(tmp_path / "export"),
        open_model(str(directory)),
        census,
        helpers_jobs.serving_flags(),
        helpers_jobs.QUIET,
        ExportFlags(),
    )
    verified = exported.manifest.results["verification"]
    assert verified["rows"] == census.shards("test").rows
    assert verified["largest_difference"] <= 1e-5
