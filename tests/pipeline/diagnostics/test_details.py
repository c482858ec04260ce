"""An evaluation's details agree with its metrics, and reach TensorBoard."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import helpers_jobs
import helpers_training
import numpy as np
import pytest

from pipeline import app, evaluate
from pipeline.flags.slicing import SlicingFlags

COLUMNS = (helpers_jobs.COLOUR, "kind", "score")


def _evaluate(job, model: str, directory: Path, **slicing) -> dict:
    evaluate.run(
        str(directory),
        job.model(model),
        job.dataset(),
        "test",
        helpers_jobs.QUIET,
        slicing=SlicingFlags(**slicing),
    )
    return json.loads((directory / "details.json").read_text())


@pytest.mark.parametrize("model", helpers_jobs.MODELS)
def test_binary(small_job, tmp_path, model):
    found = _evaluate(small_job, model, tmp_path, columns=COLUMNS, min_rows=5)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    rows = found["rows"]
    assert found["global_step"] == metrics["global_step"] == 4
    assert found["auc"] == pytest.approx(metrics["auc"], abs=0.02)
    matrix = np.array(found["confusion"])
    assert matrix.sum() == rows
    assert np.trace(matrix) / rows == pytest.approx(metrics["accuracy"], abs=1e-6)
    assert sum(bin_["rows"] for bin_ in found["calibration"]) == rows

    with open(tmp_path / "slices.csv", newline="", encoding="utf-8") as f:
        table = list(csv.DictReader(f))
    assert {line["column"] for line in table} == set(COLUMNS)
    for column in COLUMNS:
        parts = [part for part in found["slices"] if part["column"] == column]
        if found["slices_left_out"][column] == 0:
            assert sum(part["rows"] for part in parts) == rows
            mean = sum(p["rows"] * p["metrics"]["average_loss"] for p in parts) / rows
            assert mean == pytest.approx(metrics["average_loss"], rel=1e-4)
    assert found["slices_left_out"]["kind"] == 0
    # By another way: the rows of the file that are in the split.
    kinds = {p["value"]: p["rows"] for p in found["slices"] if p["column"] == "kind"}
    assert kinds.keys() == {"-1", "1", "2", "7"}

    events = helpers_training.events(small_job.model_dir(model) / "eval_test")
    values = [(e.step, v) for e in events for v in e.summary.value]
    tags = {v.tag for _, v in values}
    assert "slices/kind=2/auc" in tags and "slices" in {t.split("/")[0] for t in tags}
    (curve,) = [v for _, v in values if "pr_curve" in v.tag][-1:]
    assert curve.metadata.plugin_data.plugin_name == "pr_curves"
    assert {step for step, _ in values} == {4}


@pytest.mark.parametrize("task", ["multi_class", "regression"])
def test_other_tasks(task_jobs, tmp_path, task):
    job = task_jobs[task]
    found = _evaluate(job, "keras_wide_deep", tmp_path, columns=("kind",), min_rows=1)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert found["task"] == task
    if task == "multi_class":
        # Rows have weights here.
        matrix = np.array(found["confusion"])
        share = np.trace(matrix) / matrix.sum()
        assert share == pytest.approx(metrics["accuracy"], abs=1e-5)
        assert "calibration" not in found
        return
    parts = found["slices"]
    mean = sum(p["rows"] * p["metrics"]["average_loss"] for p in parts) / found["rows"]
    assert mean == pytest.approx(metrics["average_loss"], rel=1e-4)
    assert "confusion" not in found and found["calibration"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--slices=kid"], "--slices: there is no column kid; there are id, "),
        (["--plots"], "--plots needs matplotlib"),
    ],
)
def test_mistakes_are_one_line(small_job, tmp_path, capsys, flags, said):
    if flags == ["--plots"] and importlib.util.find_spec("matplotlib"):
        pytest.skip("matplotlib is installed")
    code = app.main(
        [
            "evaluate",
            f"--dataset_dir={small_job.dataset_dir}",
            f"--model_dir={small_job.model_dir('wide_deep')}",
            f"--evaluation_dir={tmp_path / 'e'}",
            *flags,
        ]
    )
    error = capsys.readouterr().err
    assert code == 2 and error.count("\n") == 1 and said in error


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is no extra here"
)
def test_plots(small_job, tmp_path):
    _evaluate(small_job, "wide_deep", tmp_path, plots=True)
    events = helpers_training.events(small_job.model_dir("wide_deep") / "eval_test")
    images = {
        value.tag: value.image.encoded_image_string
        for event in events
        for value in event.summary.value
        if value.HasField("image")
    }
    assert images.keys() == {"roc", "calibration", "confusion"}
    assert all(png.startswith(b"\x89PNG") for png in images.values())
