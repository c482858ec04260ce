"""Checkpoints and exports of TensorFlow 2.8.4 and 2.15.1 on the TensorFlow there is."""

from __future__ import annotations

import json
import pathlib
import shutil

import numpy as np
import old_models
import pytest

from pipeline.compat import tf

_FIXTURES = pathlib.Path(__file__).parent / "fixtures"
_every = pytest.mark.parametrize(
    "release", [pytest.param("2_8", marks=pytest.mark.slow), "2_15"]
)
_kind = pytest.mark.parametrize("kind", old_models.KINDS)


def _results(release: str) -> dict:
    path = _FIXTURES / f"models_{release}" / "results.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _same(found: dict, expected: dict) -> None:
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-4), name


@_every
@_kind
def test_a_checkpoint_is_restored_and_training_goes_on(release, kind, tmp_path):
    place = tmp_path / "model"
    shutil.copytree(_FIXTURES / f"models_{release}" / kind, place)
    expected = _results(release)[kind]
    estimator = old_models.build(kind, str(place))
    _same(old_models.says(kind, estimator), expected["after_20"])
    estimator.train(lambda: old_models.input_fn(kind, None), steps=10)
    _same(old_models.says(kind, estimator), expected["after_30"])


@_every
@_kind
def test_an_export_is_served(release, kind):
    directory = _FIXTURES / f"models_{release}" / f"export_{kind}"
    expected = _results(release)[kind]["after_20"]["first_rows"]
    found = old_models.served(kind, str(directory))
    assert found == pytest.approx(expected, abs=1e-5)
    loaded = tf.saved_model.load(str(directory))
    assert "serving_default" in loaded.signatures or kind == "premade"


@_every
@pytest.mark.parametrize("kind", ["premade", "custom"])
def test_a_new_model_starts_with_the_weights_of_an_old_one(release, kind, tmp_path):
    old = str(_FIXTURES / f"models_{release}" / kind)
    estimator = old_models.build(kind, str(tmp_path), warm_start_from=old)
    estimator.train(lambda: old_models.input_fn(kind, 1), max_steps=1)
    first = str(tmp_path / "model.ckpt-0")
    compared = 0
    for name, _ in tf.train.list_variables(first):
        if name.endswith(("kernel", "weights", "embedding_weights")):
            expected = tf.train.load_variable(old, name)
            np.testing.assert_array_equal(tf.train.load_variable(first, name), expected)
            compared += 1
    assert compared >= 2
