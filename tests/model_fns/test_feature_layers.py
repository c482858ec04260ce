"""The feature declaration as Keras layers, eagerly."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_records import column, constants_for, declare

from model_fns import feature_layers
from pipeline.compat import tf
from pipeline.types import Bucketized, Crossed, Hashed, Numeric, Scaling, Vocabulary

COLUMNS = (column("s", "string"), column("i", "int"), column("x", "float"))
FEATURES = (
    Numeric("x", "x", use="both"),
    Vocabulary("s", "s", oov_buckets=2, embedding=3),
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


def _raw():
    return {
        "s": tf.constant(["b", "a", "other"]),
        "i": tf.constant([7, -1, 0], tf.int64),
        "x": tf.constant([-1.0, 0.0, 5.0]),
    }


@pytest.fixture(name="encoder")
def make_encoder():
    return feature_layers.FeatureEncoder(DECLARATION, CONSTANTS)


def test_ids(encoder):
    assert encoder.sizes == {"s": 4, "i": 3, "hashed": 5, "bucket": 3, "cross": 7}
    found = encoder(_raw())
    assert found.keys() == DECLARATION.features.keys()
    assert found["s"][:2].numpy().tolist() == [1, 0]
    assert found["s"][2] in (2, 3)
    assert found["i"].numpy().tolist() == [1, 0, 2]
    assert found["bucket"].numpy().tolist() == [0, 1, 2]
    for name, size in encoder.sizes.items():
        assert found[name].dtype == tf.int64
        assert found[name].shape == [3]
        assert all(found[name].numpy() >= 0) and all(found[name].numpy() < size)


def test_scaled_numbers(encoder):
    found = encoder(_raw())["x"]
    assert found.dtype == tf.float32
    assert found.numpy().tolist() == [[-4], [-2], [8]]


def test_the_encoder_has_no_weights(encoder):
    encoder(_raw())
    assert encoder.weights == []


def test_wide_logits_are_a_weight_for_each_category_and_number(encoder):
    wide = feature_layers.WideLogits(encoder, 2)
    encoded = encoder(_raw())
    assert wide(encoded).numpy().tolist() == [[0, 0]] * 3
    random = np.random.default_rng(0)
    weights = {w.name: random.normal(size=w.shape) for w in wide.weights}
    wide.set_weights(list(weights.values()))
    (numbers,) = (v for name, v in weights.items() if "numbers" in name)
    (bias,) = (v for name, v in weights.items() if "bias" in name)
    wanted = bias + encoded["x"].numpy() @ numbers
    for name in encoder.sizes:
        (table,) = (v for n, v in weights.items() if f"/{name}/" in f"/{n}")
        wanted = wanted + table[encoded[name].numpy()]
    np.testing.assert_allclose(wide(encoded), wanted, rtol=1e-5)


def test_wide_logits_without_wide_features_are_the_bias():
    declaration = declare(COLUMNS, [Numeric("x", "x")])
    encoder = feature_layers.FeatureEncoder(declaration, constants_for(declaration))
    wide = feature_layers.WideLogits(encoder, 1)
    wide.set_weights([np.array([3.0])])
    assert wide(encoder(_raw())).numpy().tolist() == [[3]] * 3


def test_deep_vector_holds_every_deep_feature(encoder):
    deep = feature_layers.DeepVector(encoder, seed=1)
    # s is embedded in 3, i and hashed are one-hot in 3 and 5, x is one number.
    assert deep(encoder(_raw())).shape == [3, 3 + 3 + 5 + 1]
    assert not deep.empty


def test_deep_vector_can_be_empty():
    declaration = declare(COLUMNS, [Hashed("hashed", "s", 5, use="wide")])
    encoder = feature_layers.FeatureEncoder(declaration, constants_for(declaration))
    assert feature_layers.DeepVector(encoder, seed=1).empty


def test_field_vectors(encoder):
    fields = feature_layers.FieldVectors(encoder, 4, seed=1)
    encoded = encoder(_raw())
    found = fields(encoded)
    assert found.shape == [3, 4, 4]  # s, i, hashed, x
    number = found[:, 3] / encoded["x"]
    np.testing.assert_allclose(number, [number[0]] * 3, rtol=1e-5)
