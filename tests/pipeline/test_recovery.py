"""Damaged checkpoints, SIGTERM, and disks that cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import helpers_jobs
import pytest

from pipeline import recovery
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.types import UserError

ROOT = Path(__file__).parents[2]
MODEL = "wide_deep"


def _train(job, directory, console=helpers_jobs.QUIET, **changes):
    settings = helpers_jobs.training_flags(MODEL, checkpoint_steps=4, **changes)
    return helpers_jobs.run_training(directory, settings, job.dataset(), console)


def _newest(directory) -> str:
    return os.path.basename(tf.train.latest_checkpoint(str(directory)))


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("size", [None, 0, 100])
def test_the_checkpoint_before_a_damaged_one_is_used(
    untrained_job, tmp_path, capsys, suffix, size
):
    _train(untrained_job, tmp_path, max_steps=8)
    path = tmp_path / f"model.ckpt-8.{suffix}"
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    recovery.fall_back(str(tmp_path), Console())
    assert "model.ckpt-8" in capsys.readouterr().err
    assert _newest(tmp_path) == "model.ckpt-4"
    assert not list(tmp_path.glob("model.ckpt-8.*"))
    assert list(tmp_path.glob("damaged-model.ckpt-8.*"))


def test_training_goes_on_from_there_to_the_same_weights(untrained_job, tmp_path):
    _train(untrained_job, tmp_path / "whole", max_steps=12)
    _train(untrained_job, tmp_path / "cut", max_steps=8)
    os.truncate(tmp_path / "cut" / "model.ckpt-8.data-00000-of-00001", 100)
    result = _train(untrained_job, tmp_path / "cut", max_steps=12)
    assert result.steps == 8
    readers = [tf.train.load_checkpoint(str(tmp_path / n)) for n in ("whole", "cut")]
    for name in readers[0].get_variable_to_shape_map():
        expected, found = (reader.get_tensor(name) for reader in readers)
        assert found == pytest.approx(expected, abs=1e-6), name


def test_whole_checkpoints_stay(untrained_job, tmp_path, capsys):
    _train(untrained_job, tmp_path, max_steps=4)
    before = sorted(path.name for path in tmp_path.iterdir())
    recovery.fall_back(str(tmp_path), Console())
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert capsys.readouterr().err == ""
    recovery.fall_back(str(tmp_path / "none"), Console())


def _command(job, directory, **changes):
    flags = {"model": MODEL, "hparams": "hidden_units=[8]", "batch_size": 32, **changes}
    command = [sys.executable, "-m", "pipeline", "train"]
    command += [f"--dataset_dir={job.dataset_dir}", f"--model_dir={directory}"]
    return command + [f"--{name}={value}" for name, value in flags.items()]


def test_a_full_disk_is_one_line_and_harms_nothing(untrained_job, tmp_path):
    """A limit on the size of files fails where a full disk would."""
    _train(untrained_job, tmp_path, max_steps=4)
    limit = (tmp_path / "model.ckpt-4.data-00000-of-00001").stat().st_size // 2
    done = subprocess.run(
        _command(untrained_job, tmp_path, max_steps=8, checkpoint_steps=2),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2, done.stderr[-2000:]
    assert f"cannot write in {tmp_path}: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert (
        _train(untrained_job, tmp_path, max_steps=8).manifest.results["global_step"]
        == 8
    )


@pytest.mark.slow
def test_sigterm_saves_and_the_rerun_equals_an_undisturbed_run(untrained_job, tmp_path):
    directory = tmp_path / "model"
    process = subprocess.Popen(
        # Without evaluations, which SIGTERM would end at once.
        _command(
            untrained_job,
            directory,
            max_steps=1_000_000,
            checkpoint_steps=50,
            eval_steps=1_000_000,
        ),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 200
    while not (directory / "model.ckpt-50.index").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert time.monotonic() - sent < 30
    saved = int(_newest(directory).rsplit("-", 1)[1])
    assert saved >= 50
    assert f"a checkpoint is saved at step {saved:,}" in said
    _train(untrained_job, directory, max_steps=saved + 5)
    _train(untrained_job, tmp_path / "whole", max_steps=saved + 5)
    readers = [
        tf.train.load_checkpoint(str(path)) for path in (directory, tmp_path / "whole")
    ]
    for name in readers[0].get_variable_to_shape_map():
        expected, found = (reader.get_tensor(name) for reader in readers)
        assert found == pytest.approx(expected, abs=1e-6), name


def test_errors_of_another_kind_stay_as_they_are():
    with (
        pytest.raises(tf.errors.InternalError),
        recovery.explained_writes("somewhere"),
    ):
        raise tf.errors.InternalError(None, None, "other")
    with (
        pytest.raises(UserError, match="somewhere: No space left on device"),
        recovery.explained_writes("somewhere"),
    ):
        raise tf.errors.ResourceExhaustedError(None, None, "x; No space left on device")
