"""Weights that are no numbers stop training and never reach a checkpoint."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline import hooks_nan
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import ExitCode, UserError

_GOOD_STEPS = 7


def _input_fn():
    """Good batches, then one with a NaN, then good ones again."""

    def batches():
        random = np.random.default_rng(0)
        step = 0
        while True:
            x = random.normal(size=(8, 2)).astype(np.float32)
            if step == _GOOD_STEPS:
                x[3, 1] = math.nan
            yield {"x": x}, (x[:, 0] > 0).astype(np.float32)
            step += 1

    kind = ({"x": tf.TensorSpec([8, 2])}, tf.TensorSpec([8]))
    return tf.data.Dataset.from_generator(batches, output_signature=kind)


def _estimator(directory, save_steps: int = 5) -> estimator.Estimator:
    return estimator.DNNClassifier(
        [16],
        [tf.feature_column.numeric_column("x", [2])],
        optimizer=lambda: tf_keras.optimizers.legacy.SGD(0.1),
        config=estimator.RunConfig(
            model_dir=str(directory),
            tf_random_seed=1,
            save_checkpoints_steps=save_steps,
            keep_checkpoint_max=None,
        ),
    )


def _checkpoint_step(directory) -> int:
    path = tf.train.latest_checkpoint(str(directory))
    reader = tf.train.load_checkpoint(path)
    for name in reader.get_variable_to_shape_map():
        assert np.isfinite(reader.get_tensor(name)).all(), name
    return int(reader.get_tensor("global_step"))


def test_nan_weights_have_a_finite_loss(tmp_path):
    """What the guard is for: nothing else notices."""
    model = _estimator(tmp_path)
    model.train(_input_fn, max_steps=12)
    bad = [
        name
        for name in model.get_variable_names()
        if not np.isfinite(model.get_variable_value(name)).all()
    ]
    assert bad
    assert math.isfinite(model.evaluate(_input_fn, steps=3)["loss"])


def test_no_checkpoint_of_nan_weights(tmp_path):
    with pytest.raises(UserError, match=r"step 10 the variable \S*kernel") as caught:
        _estimator(tmp_path).train(
            _input_fn,
            max_steps=100,
            saving_listeners=[hooks_nan.NanWeightsListener()],
        )
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert _checkpoint_step(tmp_path) == 5


def test_none_at_the_end_either(tmp_path):
    with pytest.raises(UserError, match="step 9 the variable"):
        _estimator(tmp_path, save_steps=1000).train(
            _input_fn, max_steps=9, saving_listeners=[hooks_nan.NanWeightsListener()]
        )
    assert _checkpoint_step(tmp_path) == 0


def test_good_weights_are_left_alone(tmp_path):
    model = _estimator(tmp_path)
    model.train(
        _input_fn,
        max_steps=_GOOD_STEPS,
        saving_listeners=[hooks_nan.NanWeightsListener()],
    )
    assert _checkpoint_step(tmp_path) == _GOOD_STEPS
