"""What TensorBoard reads (OPS-2): each point once, at its global step."""

from __future__ import annotations

import re
from pathlib import Path

import helpers_training
import pytest

from pipeline.compat import tf
from pipeline.dataset import Dataset

_START = tf.compat.v1.SessionLog.START


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _shown(directory: Path) -> dict[str, list[int]]:
    """Returns the steps of each scalar as TensorBoard shows them: the start of a
    session at a step takes back what was written at that step and beyond."""
    points: dict[str, list[int]] = {}
    for event in helpers_training.events(directory):
        if event.HasField("session_log") and event.session_log.status == _START:
            points = {
                tag: [step for step in steps if step < event.step]
                for tag, steps in points.items()
            }
        for value in event.summary.value:
            points.setdefault(value.tag, []).append(event.step)
    return points


@pytest.mark.parametrize("model", ["wide_deep", "keras_wide_deep"])
def test_ops_2_curves_after_a_restart_from_an_earlier_checkpoint(
    tmp_path, dataset, model, capsys
):
    directory = tmp_path / "m"
    options = {"model": model, "summary_steps": 5, "checkpoint_steps": 10}
    helpers_training.train(directory, dataset, max_steps=20, **options)
    for path in directory.glob("model.ckpt-20.*"):
        path.unlink()
    helpers_training.train(
        directory, dataset, helpers_training.LOUD, max_steps=30, **options
    )
    assert "goes back to the one of step 10" in capsys.readouterr().err

    written = helpers_training.scalar_steps(directory, "loss")
    assert len(written) > len(set(written)), "the runs overlap"
    curves = {"training": _shown(directory), "eval": _shown(directory / "eval")}
    assert curves["eval"]["loss"] == [10, 20, 30]
    for run, tags in curves.items():
        for tag, steps in tags.items():
            assert steps == sorted(set(steps)), (run, tag)
            assert all(0 < step <= 30 for step in steps), (run, tag)
    # One at the beginning of each session, then every five steps.
    assert {6, 11, 16, 21, 26} <= set(curves["training"]["loss"])
    assert "loss" in curves["training"].keys() & curves["eval"].keys()


def test_ops_2_configurations_do_not_mix(tmp_path, dataset):
    """Two models below one directory, each with its own training and eval run."""
    for seed in (1, 2):
        helpers_training.train(
            tmp_path / f"seed{seed}", dataset, max_steps=10, seed=seed
        )
    runs = {
        str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("events.*")
    }
    assert runs == {"seed1", "seed1/eval", "seed2", "seed2/eval"}
    for path in tmp_path.rglob("events.*"):
        assert re.fullmatch(r"seed[12](/eval)?", str(path.parent.relative_to(tmp_path)))
