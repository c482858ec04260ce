"""Features of kind `sequence` as models for sequences take them."""

from __future__ import annotations

from model_fns import tables
from model_fns.feature_layers import Encoded, FeatureEncoder
from model_fns.tables import Table
from pipeline.compat import tf, tf_keras
from pipeline.types import TokenSequence


def padded_ids(
    encoded: Encoded, feature: TokenSequence, padding: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns int64 ids [batch, max_length], and how many of a row are values [batch].

    Args:
      encoded: Of a FeatureEncoder.
      feature: The feature.
      padding: Stands after the last value; a number that is no id, e.g. the encoder's
        `sizes` of the feature.
    """
    ids = encoded[feature.name]
    shape = [None, feature.max_length]
    return ids.to_tensor(tf.constant(padding, tf.int64), shape=shape), ids.row_lengths()


class SequenceVectors(tf_keras.layers.Layer):
    """The values of a sequence in order, for recurrent and attention models.

    Call it with `Encoded`; it returns float32 [batch, max_length, width], with zeros
    after the last value, and bool [batch, max_length]: which of them are values.

    Args:
      feature: The feature; it has an embedding or is one-hot.
      seed: For the embedding.
    """

    def __init__(
        self, encoder: FeatureEncoder, feature: TokenSequence, seed: int, **kwargs
    ):
        super().__init__(dtype="float32", **kwargs)
        self._feature = feature
        self._size = encoder.sizes[feature.name]
        self._table = None
        if feature.embedding is not None:
            initializer = tables.narrow_normal(feature.embedding, seed)
            self._table = Table(
                self._size, feature.embedding, initializer, None, feature.name
            )

    def call(self, encoded: Encoded) -> tuple[tf.Tensor, tf.Tensor]:
        ids = encoded[self._feature.name]
        flat = ids.flat_values
        if self._table is None:
            vectors = tf.one_hot(flat, self._size)
        else:
            vectors = self._table(flat)
        length = self._feature.max_length
        width = self._feature.embedding or self._size
        in_order = ids.with_flat_values(vectors).to_tensor(shape=[None, length, width])
        return in_order, tf.sequence_mask(ids.row_lengths(), length)
