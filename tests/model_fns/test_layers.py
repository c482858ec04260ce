"""Layers that models under an Estimator need, eagerly and in graphs."""

from __future__ import annotations

import numpy as np
import pytest

from model_fns import layers
from pipeline.compat import tf


def _masks(seed: int, steps, rate: float = 0.25, shape=(40, 50), value=3.0):
    """Outputs in training at each of the global steps."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        step = tf.compat.v1.train.get_or_create_global_step()
        dropped = layers.StepDropout(rate, seed)(tf.fill(shape, value), training=True)
        at_step = tf.compat.v1.placeholder(tf.int64, [])
        assign = step.assign(at_step)
        outputs = []
        for number in steps:
            session.run(assign, {at_step: number})
            outputs.append(session.run(dropped))
        return outputs


def test_dropout_mask_is_a_function_of_seed_and_step():
    first = _masks(1, [0, 1, 2, 10**10, 1])
    np.testing.assert_array_equal(first[1], first[4])
    again = _masks(1, [2, 10**10])  # A new graph and session, other steps before
    np.testing.assert_array_equal(again, first[2:4])
    (other_seed,) = _masks(2, [0])
    different = [first[0], first[1], first[2], first[3], other_seed]
    assert len({mask.tobytes() for mask in different}) == 5


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_its_share_and_scales_it(rate):
    (output,) = _masks(5, [3], rate)
    kept = output != 0
    assert np.mean(kept) == pytest.approx(1 - rate, abs=0.05)
    np.testing.assert_allclose(output[kept], 3.0 / (1 - rate), rtol=1e-6)
    # Neither whole rows nor whole columns fall out together.
    assert np.std(kept.mean(axis=0)) < 0.12
    assert np.std(kept.mean(axis=1)) < 0.12


def test_dropout_of_nothing():
    (output,) = _masks(5, [3], rate=0.0)
    assert (output == 3).all()
    assert _masks(5, [3], shape=(0, 4))[0].shape == (0, 4)


def test_no_dropout_outside_training():
    layer = layers.StepDropout(0.5, 1)
    assert (layer(tf.ones([9, 9])).numpy() == 1).all()
    assert (layer(tf.ones([9, 9]), training=False).numpy() == 1).all()


def test_dropout_without_a_global_step_is_ordinary():
    layer = layers.StepDropout(0.5, 1)
    outputs = [layer(tf.ones([30, 30]), training=True).numpy() for _ in range(2)]
    assert np.mean(outputs[0] == 0) == pytest.approx(0.5, abs=0.1)
    assert (outputs[0] != outputs[1]).any()
