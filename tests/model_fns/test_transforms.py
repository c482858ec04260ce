"""The transformations of raw values, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from model_fns import transforms
from pipeline.compat import tf
from pipeline.types import Scale, Scaling


def _scaled(values, dtype, scale, scaling) -> np.ndarray:
    return transforms.scaled(tf.constant(values, dtype), scale, scaling).numpy()


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32])
@pytest.mark.parametrize("scale", list(Scale))
def test_scaled_is_what_the_declaration_says(dtype, scale):
    values = [-1000, -1, 0, 1, 7, 10**6]
    scaling = Scaling(0.5, 0.25)
    found = _scaled(values, dtype, scale, scaling)
    wanted = [
        ((math.copysign(math.log1p(abs(v)), v) if scale is Scale.LOG else v) - 0.5)
        * 0.25
        for v in values
    ]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_differences_within_large_ints_are_kept():
    """Milliseconds since 1970 within one second: float32 sees one value."""
    now = 1_700_000_000_000
    found = _scaled(
        [now - 500, now, now + 250], tf.int64, Scale.ZSCORE, Scaling(now, 0.002)
    )
    np.testing.assert_allclose(found, [-1, 0, 0.5], rtol=1e-6)


def test_shift_that_float32_cannot_hold_leaves_no_bias():
    values = np.float32([1e6 + 0.0625, 1e6 + 0.1875])
    shift = float(np.mean(values, dtype=np.float64)) + 0.03
    found = _scaled(values, tf.float32, Scale.ZSCORE, Scaling(shift, 10.0))
    np.testing.assert_allclose(found, [-0.925, 0.325], rtol=1e-6)


def test_extremes_of_int64_stay_finite():
    found = _scaled([-(2**63), 2**63 - 1], tf.int64, Scale.LOG, Scaling(0.0, 1.0))
    np.testing.assert_allclose(found, [-math.log(2**63), math.log(2**63)], rtol=1e-6)


def test_buckets_hold_their_lower_boundary():
    values = tf.constant([-math.inf, -0.1, 0.0, 0.1, 0.2, 0.3, 5.0, math.inf])
    found = transforms.bucket_ids(values, (0.0, 0.1, 0.3))
    assert found.dtype == tf.int64
    assert found.numpy().tolist() == [0, 0, 1, 2, 2, 3, 3, 3]


def test_buckets_of_ints():
    values = tf.constant([-(2**63), -1, 0, 9, 10, 2**63 - 1], tf.int64)
    found = transforms.bucket_ids(values, (0.0, 10.0)).numpy().tolist()
    assert found == [0, 0, 1, 1, 2, 2]


def test_hashes_stay_what_they_are():
    """Fixed numbers: another hash would silently spoil every saved model."""
    texts = tf.constant([b"", b"a", b"-1", "\u65e5\u672c".encode(), b"\xff\x00"])
    assert transforms.hashed_ids(texts, 1000).numpy().tolist() == [
        263,
        939,
        430,
        883,
        463,
    ]
    ids = tf.constant([0, 1, -1, 2**40, 3], tf.int64)
    assert transforms.crossed_ids([texts, ids], 1000).numpy().tolist() == [
        600,
        485,
        829,
        737,
        645,
    ]
    crossed = transforms.crossed_ids([ids, texts, texts], 1000).numpy().tolist()
    assert crossed == [330, 838, 846, 654, 472]


def test_crosses_depend_on_the_order_of_their_parts():
    a, b = tf.constant(["x", "y"]), tf.constant(["y", "x"])
    assert (
        transforms.crossed_ids([a, b], 10**6).numpy().tolist()
        != transforms.crossed_ids([b, a], 10**6).numpy().tolist()
    )


def test_no_rows():
    text = tf.constant([], tf.string)
    number = tf.constant([], tf.int64)
    assert transforms.hashed_ids(text, 5).shape == [0]
    assert transforms.crossed_ids([text, number], 5).shape == [0]
    assert transforms.bucket_ids(number, (1.0,)).shape == [0]
    assert transforms.scaled(number, Scale.LOG, Scaling(0, 1)).shape == [0]
