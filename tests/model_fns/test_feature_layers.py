"""The feature declaration as Keras layers, eagerly."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_images import png
from helpers_records import column, constants_for, declare

from model_fns import feature_layers
from pipeline.compat import tf
from pipeline.types import (
    Bucketized,
    Combiner,
    Crossed,
    Date,
    DatePart,
    Hashed,
    Identity,
    Image,
    Numeric,
    Scaling,
    Vocabulary,
)

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


def test_several_and_weighted_values_and_images():
    columns = (*COLUMNS, column("w", "string"), column("photo", "string"))
    features = [
        Vocabulary("tags", "s", embedding=2, separator="|", weights="w"),
        Hashed("hashed", "s", 5, separator="|"),
        Identity("id", "i", 3, weights="x", combiner=Combiner.SUM, embedding=2),
        Date("month", "s", DatePart.MONTH),
        Image("photo", "photo", 2, 2),
    ]
    declaration = declare(columns, features)
    constants = constants_for(declaration, {"tags": [b"a", b"b"]})
    encoder = feature_layers.FeatureEncoder(declaration, constants)
    assert encoder.sizes == {"tags": 3, "hashed": 5, "id": 4, "month": 13}
    encoded = encoder(
        {
            "s": tf.constant(["b|a|b", "", "2024-02-01"]),
            "w": tf.constant(["2|3", "", "0.5"]),
            "i": tf.constant([1, -1, 2], tf.int64),
            "x": tf.constant([0.5, 2.0, -1.0]),
            "photo": tf.constant([png(), b"", b""]),
        }
    )
    assert encoded["tags"].ids.to_list() == [[1, 0, 1], [], [2]]
    assert encoded["tags"].weights.to_list() == [[2, 3, 1], [], [0.5]]
    assert encoded["hashed"].row_lengths().numpy().tolist() == [3, 0, 1]
    assert encoded["id"].weights.numpy().tolist() == [0.5, 2, 0]
    assert encoded["month"].numpy().tolist() == [12, 12, 1]
    assert encoded["photo"].shape == [3, 2, 2, 3]

    wide = feature_layers.WideLogits(encoder, 1)
    wide(encoded)
    random = np.random.default_rng(0)
    tables = {w.name: random.normal(size=w.shape) for w in wide.weights}
    wide.set_weights(list(tables.values()))
    tags, hashed, ids, months, bias = (
        next(v[:, 0] if v.ndim == 2 else v for n, v in tables.items() if f"{p}" in n)
        for p in ("/tags/", "/hashed/", "/id/", "/month/", "bias")
    )
    first = 2 * tags[1] + 3 * tags[0] + tags[1] + 0.5 * ids[1] + months[12]
    flat = encoded["hashed"].to_list()
    wanted = [
        bias[0] + first + sum(hashed[i] for i in flat[0]),
        bias[0] + 2 * ids[3] + months[12],
        bias[0] + 0.5 * tags[2] + hashed[flat[2][0]] + months[1],
    ]
    np.testing.assert_allclose(wide(encoded)[:, 0], wanted, rtol=1e-5)

    assert feature_layers.DeepVector(encoder, 1)(encoded).shape == [
        3,
        2 + 5 + 2 + 13 + 12,
    ]
    fields = feature_layers.FieldVectors(encoder, 4, seed=1)(encoded)
    assert fields.shape == [3, 5, 4]
    assert fields[1, :2].numpy().tolist() == [[0] * 4] * 2
    assert fields[1:, 4].numpy().tolist() == [[0] * 4] * 2
    assert (fields[0, 4].numpy() != 0).all()
