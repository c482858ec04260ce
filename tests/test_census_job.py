"""The whole Census job through the command line, as `make run` does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODELS = ("wide_deep", "keras_wide_deep")
_TIMEOUT = 400


def _command(work: Path, model: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pipeline",
        "run",
        "--flagfile=examples/census/census.flags",
        f"--work_dir={work}",
        f"--model={model}",
    ]


def _run(work: Path, model: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        _command(work, model),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def _kill_when(work: Path, model: str, ready: Callable[[str], bool]) -> None:
    """Starts the job and kills it (SIGKILL) once a line it prints is the sign."""
    child = subprocess.Popen(
        _command(work, model),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(_TIMEOUT, child.kill)
    watchdog.start()
    try:
        assert any(ready(line) for line in child.stderr), "ended before the sign"
    finally:
        child.kill()
        child.wait()
        child.stderr.close()
        watchdog.cancel()


def _kill_in_training(work: Path, model: str) -> None:
    """Kills the job between two checkpoints, after the first one with progress."""
    child = subprocess.Popen(
        _command(work, model),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    checkpoint = work / model / "model" / "model.ckpt-201.index"
    deadline = time.monotonic() + _TIMEOUT
    try:
        while not checkpoint.exists():
            assert child.poll() is None, "ended before the checkpoint"
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()


def _metrics(work: Path, model: str) -> dict[str, float]:
    return json.loads((work / model / "evaluation" / "metrics.json").read_text())


def _manifest(directory: Path) -> dict:
    return json.loads((directory / "manifest.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A work directory in which both models' jobs ran undisturbed."""
    work = tmp_path_factory.mktemp("census")
    for model in MODELS:
        _run(work, model)
    return work


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_quality(finished, model):
    metrics = _metrics(finished, model)
    assert metrics["accuracy"] >= 0.85
    assert metrics["auc"] >= 0.910
    # A model that knew the test split would do better than any published one.
    assert metrics["auc"] < 0.935


@pytest.mark.slow
def test_the_data_is_accounted_for(finished):
    results = _manifest(finished / "dataset")["results"]
    assert results["rows_read"] == 48_842
    assert results["rows_rejected"] == 0
    assert sum(results["rows_written"].values()) == 48_842


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_model_directory_says_how_it_came_about(finished, model):
    manifest = _manifest(finished / model / "model")
    assert (
        manifest["inputs"]["dataset"] == _manifest(finished / "dataset")["fingerprint"]
    )
    assert manifest["configuration"]["seed"] == 1
    assert manifest["results"]["global_step"] == manifest["configuration"]["max_steps"]
    assert manifest["results"]["metrics"]["auc"] > 0.9
    assert manifest["versions"]["tensorflow"]
    names = os.listdir(finished / model / "model")
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert "--epochs=12.0" in (finished / model / "model" / "flags.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_second_run_reuses_everything(finished, model):
    before = _manifest(finished / model / "model")
    versions = sorted(os.listdir(finished / model / "export"))
    done = _run(finished, model)
    for stage in ("preprocess", "train", "evaluate", "export"):
        assert f"{stage}: reused" in done.stderr
    assert _manifest(finished / model / "model") == before
    assert sorted(os.listdir(finished / model / "export")) == versions


# A last bit differs in a few jobs of the premade model, resumed or not, and grows; why
# is not known yet, see Known limits in BUILD_NOTES.md.
_NOT_EXACT = pytest.mark.xfail(
    reason="a premade model may differ by a last bit, which grows", strict=False
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [pytest.param("wide_deep", marks=_NOT_EXACT), "keras_wide_deep"]
)
def test_killed_and_run_again_gives_the_same(finished, tmp_path, model):
    _kill_when(tmp_path, model, lambda line: line.startswith("preprocess: 1 file"))
    assert not (tmp_path / "dataset").exists()
    _kill_in_training(tmp_path, model)
    assert not (tmp_path / model / "model" / "manifest.json").exists()
    _kill_when(tmp_path, model, lambda line: line.startswith("verify:"))
    exported = tmp_path / model / "export"
    assert not [name for name in os.listdir(exported) if name.isdecimal()]
    done = _run(tmp_path, model)
    assert "preprocess: reused" in done.stderr and "train: reused" in done.stderr
    assert _metrics(tmp_path, model) == pytest.approx(
        _metrics(finished, model), abs=1e-6
    )
    shards = _manifest(tmp_path / "dataset")["results"]["shards"]
    assert shards == _manifest(finished / "dataset")["results"]["shards"]
    leftovers = [name for name in os.listdir(exported) if ".tmp-" in name]
    assert not leftovers
