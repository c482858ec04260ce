"""Random rows: valid for the declaration, and as many as are asked for."""

from __future__ import annotations

import itertools

import numpy as np
from helpers_records import column, constants_for, declare

from input_fns.options import TrainInput
from input_fns.synthetic import synthetic_input_fn
from pipeline.compat import tf
from pipeline.types import Hashed, Identity, Label, Numeric, Vocabulary

COLUMNS = (
    column("i", "int", min=-3, max=5),
    column("id", "int"),
    column("listed", "string", values=("a", "b")),
    column("f", "float", max=-2.5),
    column("v", "string"),
    column("number", "int"),
    column("h", "string", default=""),
    column("w", "float", min=0.0),
    column("y", "int"),
)
FEATURES = [
    Numeric("i", "i"),
    Identity("id", "id", 4),
    Hashed("listed", "listed", 9),
    Numeric("f", "f"),
    Vocabulary("v", "v"),
    Vocabulary("number", "number"),
    Hashed("h", "h", 3),
]
DECLARATION = declare(COLUMNS, FEATURES, Label("y", ("1", "2")), weight="w")
CONSTANTS = constants_for(DECLARATION, {"v": [b"x", b"\xff"], "number": [b"-7", b"9"]})


def _batches(options, context=None, count=20):
    input_fn = synthetic_input_fn(DECLARATION, CONSTANTS, options)
    dataset = input_fn(input_context=context)
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


def test_values_are_allowed_ones():
    allowed = {
        "i": set(range(-3, 6)),
        "id": set(range(4)),
        "listed": {b"a", b"b"},
        "v": {b"x", b"\xff"},
        "number": {-7, 9},
        "h": {b"value 0", b"value 1", b"value 2"},
    }
    batches = _batches(TrainInput(64, 10, seed=1))
    for name, values in allowed.items():
        assert {v for f, _ in batches for v in f[name].tolist()} == values, name
    features, labels = batches[0]
    assert features["f"].dtype == np.float32 and features["f"].max() <= -2.5
    assert features["w"].min() >= 0
    assert {v for _, y in batches for v in y.tolist()} == {b"1", b"2"}
    assert all(len(y) == 64 for _, y in batches)


def test_the_seed_decides():
    one, same = (_batches(TrainInput(8, 1, seed=1), count=1)[0] for _ in range(2))
    other = _batches(TrainInput(8, 1, seed=2), count=1)[0]
    np.testing.assert_array_equal(one[0]["w"], same[0]["w"])
    assert (one[0]["w"] != other[0]["w"]).any()


def test_replicas_share_the_batch():
    context = tf.distribute.InputContext(1, 0, 2)
    batches = _batches(TrainInput(8, 1, seed=1), context, 40)
    assert {len(y) for _, y in batches} == {4}
