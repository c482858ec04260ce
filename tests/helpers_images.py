"""Encoded images for tests."""

from __future__ import annotations

import numpy as np

from pipeline.compat import tf

PIXELS = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 14
"""Height 2, width 3, red, green and blue."""


def png(pixels: np.ndarray = PIXELS) -> bytes:
    return tf.io.encode_png(pixels).numpy()


def jpeg(pixels: np.ndarray = PIXELS) -> bytes:
    return tf.io.encode_jpeg(pixels, quality=95).numpy()
