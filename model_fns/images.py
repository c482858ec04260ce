"""Encoded images to numbers, in the graph."""

from __future__ import annotations

from pipeline.compat import tf
from pipeline.types import Image

_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"


def _starts_with(encoded: tf.Tensor, beginning: bytes) -> tf.Tensor:
    return tf.equal(tf.strings.substr(encoded, 0, len(beginning)), beginning)


def decoded(
    encoded: tf.Tensor, feature: Image, default: str | None = None
) -> tf.Tensor:
    """Returns float32 [batch, height, width, channels] from 0 to 1.

    The column's default, which stands for a missing image, and the empty text give a
    black image. Other bytes that are no JPEG or PNG image fail with an error that
    names the feature. Images are resized bilinearly, with antialiasing.

    Args:
      encoded: Encoded images, string [batch].
      feature: Says what they become.
      default: Of the column.
    """
    shape = [feature.height, feature.width, feature.channels]
    is_missing = tf.equal(encoded, "")
    if default is not None:
        is_missing |= tf.equal(encoded, default)
    is_image = _starts_with(encoded, _JPEG) | _starts_with(encoded, _PNG)
    wrong = tf.logical_not(is_missing | is_image)
    check = tf.debugging.Assert(
        tf.logical_not(tf.reduce_any(wrong)),
        [
            f"feature {feature.name}: a value of column {feature.column} is no JPEG or"
            " PNG image; it begins with:",
            tf.strings.substr(tf.boolean_mask(encoded, wrong), 0, 16),
        ],
    )

    def decode(one: tf.Tensor) -> tf.Tensor:
        # The name is what an error about damaged bytes shows.
        pixels = tf.io.decode_image(
            one, feature.channels, expand_animations=False, name=feature.name
        )
        pixels.set_shape([None, None, feature.channels])
        resized = tf.image.resize(pixels, shape[:2], antialias=True)
        return tf.clip_by_value(resized / 255.0, 0.0, 1.0)

    def one_image(given: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        one, nothing = given
        return tf.cond(nothing, lambda: tf.zeros(shape), lambda: decode(one))

    with tf.control_dependencies([check]):
        encoded = tf.identity(encoded)
    images = tf.map_fn(one_image, (encoded, is_missing), fn_output_signature=tf.float32)
    return tf.ensure_shape(images, [None, *shape])
