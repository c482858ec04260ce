"""Keras layers of the feature declaration, eagerly and in graphs."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_records import column, constants_for, declare

from model_fns import layers
from pipeline.compat import tf
from pipeline.types import Bucketized, Crossed, Hashed, Numeric, Scaling, Vocabulary

COLUMNS = (column("s", "string"), column("i", "int"), column("x", "float"))
FEATURES = (
    Numeric("x", "x"),
    Vocabulary("s", "s", oov_buckets=2),
    Vocabulary("i", "i"),
    Hashed("hashed", "s", 5),
    Bucketized("bucket", "x", (0.0, 1.0)),
    Crossed("cross", ("hashed", "i", "bucket"), 7),
)
DECLARATION = declare(COLUMNS, FEATURES)
CONSTANTS = constants_for(
    DECLARATION,
    {"s": [b"a", b"b"], "i": [b"-1", b"7"]},
    {"x": Scaling(1.0, 2.0)},
)


def test_category_ids():
    ids = layers.CategoryIds(DECLARATION, CONSTANTS)
    assert ids.sizes == {"s": 4, "i": 3, "hashed": 5, "bucket": 3, "cross": 7}
    found = ids(
        {
            "s": tf.constant(["b", "a", "other"]),
            "i": tf.constant([7, -1, 0], tf.int64),
            "x": tf.constant([-1.0, 0.0, 5.0]),
        }
    )
    assert found.keys() == ids.sizes.keys()
    assert found["s"][:2].numpy().tolist() == [1, 0]
    assert found["s"][2] in (2, 3)
    assert found["i"].numpy().tolist() == [1, 0, 2]
    assert found["bucket"].numpy().tolist() == [0, 1, 2]
    for name, size in ids.sizes.items():
        assert found[name].dtype == tf.int64
        assert found[name].shape == [3]
        assert all(found[name].numpy() >= 0) and all(found[name].numpy() < size)


def test_category_ids_have_no_weights():
    ids = layers.CategoryIds(DECLARATION, CONSTANTS)
    assert ids.weights == []


def test_scaled_numbers_keep_the_order_of_features():
    features = [Numeric("x", "x"), Numeric("i", "i")]
    constants = constants_for(
        declare(COLUMNS, features), scalings={"x": Scaling(1, 2), "i": Scaling(0, 10)}
    )
    raw = {"x": tf.constant([1.0, 2.0]), "i": tf.constant([3, 4], tf.int64)}
    found = layers.ScaledNumbers(features, constants)(raw)
    assert found.dtype == tf.float32
    assert found.numpy().tolist() == [[0, 30], [2, 40]]


# --- StepDropout ------------------------------------------------------------------


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
