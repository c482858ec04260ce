"""What a training writes for TensorBoard: all tags, at the steps they belong to."""

from __future__ import annotations

from pathlib import Path

import helpers_training
import numpy as np
import pytest

from pipeline.compat import tf
from pipeline.flags.watching import WatchFlags

_PARTS = {"wide_deep": ("", "/wide"), "keras_wide_deep": ("",)}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, dataset):
    """Model directories by model; interrupted once."""
    root = tmp_path_factory.mktemp("trained")
    for model in _PARTS:
        for max_steps in (20, 30):
            helpers_training.train(
                root / model,
                dataset,
                model=model,
                summary_steps=5,
                max_steps=max_steps,
            )
    return root


def _scalars(directory: Path) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for event in helpers_training.events(directory):
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                points = found.setdefault(value.tag, {})
                assert event.step not in points, (value.tag, event.step)
                points[event.step] = value.simple_value
    return found


def _histograms(directory: Path) -> dict[str, dict[int, object]]:
    found: dict[str, dict[int, object]] = {}
    for event in helpers_training.events(directory):
        for value in event.summary.value:
            if value.tag.startswith("weights/"):
                found.setdefault(value.tag, {})[event.step] = value.histo
    return found


@pytest.mark.parametrize("model", _PARTS)
def test_the_optimizers_curves(trained, model):
    found = _scalars(trained / model)
    for part in _PARTS[model]:
        rates = found[f"learning_rate{part}"]
        norms = found[f"gradient_norm{part}"]
        assert rates.keys() == norms.keys() == found["loss"].keys()
        assert all(rate > 0 for rate in rates.values())
        assert all(np.isfinite(norm) and norm > 0 for norm in norms.values())


@pytest.mark.parametrize("model", _PARTS)
def test_speed_waiting_and_memory(trained, model):
    found = _scalars(trained / model)
    for tag in ("speed/examples_per_second", "memory/process_mib"):
        assert list(found[tag]) == [5, 10, 15, 20, 25, 30]
        assert min(found[tag].values()) > 0
    # Every tenth step is looked at, from the second one on.
    shares = found["speed/input_wait_share"]
    assert shares and shares.keys() <= {5, 10, 15, 20, 25, 30}
    assert all(0 <= share <= 1 for share in shares.values())


@pytest.mark.parametrize("model", _PARTS)
def test_histograms_of_the_weights(trained, model):
    found = _histograms(trained / model)
    variables = helpers_training.variables(trained / model)
    assert found
    for tag, points in found.items():
        assert list(points) == [10, 20, 30], tag
        value = variables[tag.removeprefix("weights/")]
        last = points[30]
        assert last.num == value.size
        np.testing.assert_allclose(last.sum, value.sum(), rtol=1e-4, atol=1e-4)
    shapes = [variables[tag.removeprefix("weights/")].ndim for tag in found]
    assert 2 in shapes and 1 in shapes


def test_a_large_variable_is_sampled(tmp_path):
    from pipeline.hooks_curves import HistogramsListener

    with tf.Graph().as_default():
        tf.compat.v1.get_variable("big", [130_001], trainable=True)
        listener = HistogramsListener(str(tmp_path))
        listener.begin()
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            listener.after_save(session, 0)
            listener.after_save(session, 7)
        tf.compat.v1.summary.FileWriterCache.clear()
    ((tag, points),) = _histograms(tmp_path).items()
    assert (tag, list(points)) == ("weights/big", [7])
    assert 40_000 < points[7].num <= 50_000


def test_without_curves(tmp_path, dataset):
    watch = WatchFlags(curves=False)
    helpers_training.train(tmp_path, dataset, max_steps=2, watch=watch)
    tags = _scalars(tmp_path).keys()
    assert "loss" in tags
    assert not any(tag.startswith(("speed/", "memory/")) for tag in tags)
    assert not _histograms(tmp_path)


def test_several_steps_a_call(tmp_path, dataset):
    """What goes on inside of the loop is not seen; the rest is."""
    helpers_training.train(
        tmp_path,
        dataset,
        model="keras_wide_deep",
        steps_per_run=5,
        summary_steps=10,
        max_steps=20,
    )
    found = _scalars(tmp_path)
    assert list(found["speed/examples_per_second"]) == [10, 20]
    assert "speed/input_wait_share" not in found


def test_the_weights_are_the_same_with_and_without(tmp_path, dataset, trained):
    helpers_training.train(
        tmp_path, dataset, max_steps=30, watch=WatchFlags(curves=False, stall_seconds=0)
    )
    watched = helpers_training.variables(trained / "wide_deep")
    for name, value in helpers_training.variables(tmp_path).items():
        np.testing.assert_allclose(value, watched[name], rtol=1e-6, err_msg=name)


def test_a_profile(tmp_path, dataset, capsys):
    helpers_training.train(
        tmp_path,
        dataset,
        helpers_training.LOUD,
        max_steps=9,
        watch=WatchFlags(profile_steps=(4, 7)),
    )
    (line,) = [s for s in capsys.readouterr().err.splitlines() if "profile:" in s]
    assert "steps 4 to 6 are in" in line and "-bound: " in line
    (trace,) = tmp_path.rglob("*.xplane.pb")
    assert trace.parts[-4:-2] == ("plugins", "profile")
    assert b"IteratorGetNext" in trace.read_bytes()
