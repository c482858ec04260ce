"""Our Adam and Keras' own move the same variables in the same way."""

from __future__ import annotations

import numpy as np
import pytest

from model_fns import fast_adam
from pipeline.compat import tf, tf_keras


def _trained(optimizer, batches):
    table = tf.Variable(np.random.default_rng(0).normal(size=(20, 3)).astype("f"))
    for ids, targets in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, ids) - targets))
        (gradient,) = tape.gradient(loss, [table])
        assert isinstance(gradient, tf.IndexedSlices)
        optimizer.apply_gradients([(gradient, table)])
    return [table.numpy(), *optimizer.get_weights()]


@pytest.mark.parametrize("settings", [{}, {"amsgrad": True}, {"beta_1": 0.0}])
def test_rows_move_as_under_keras(settings):
    random = np.random.default_rng(1)
    batches = [
        (random.integers(0, 9, 16), random.normal(size=(16, 3)).astype("f"))
        for _ in range(20)
    ]
    found = _trained(fast_adam.Adam(0.1, **settings), batches)
    wanted = _trained(tf_keras.optimizers.legacy.Adam(0.1, **settings), batches)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    # Rows 9 and above were in no batch.
    assert (found[0][9:] == wanted[0][9:]).all()


def test_a_row_that_was_touched_once_goes_on_moving():
    first = (np.array([0]), np.ones((1, 3), "f"))
    other = (np.array([1]), np.ones((1, 3), "f"))
    once = _trained(fast_adam.Adam(0.1), [first])[0][0]
    later = _trained(fast_adam.Adam(0.1), [first, other])[0][0]
    assert (once != later).all()
