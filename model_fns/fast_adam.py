"""Adam, faster where the model has embeddings."""

from __future__ import annotations

from pipeline.compat import tf, tf_keras


class Adam(tf_keras.optimizers.legacy.Adam):
    """Keras' Adam, with one fused update for embeddings as well.

    Of an embedding's gradient Keras gets the rows that a batch touched, but Adam moves
    every row in every step, since moments decay everywhere. Keras does that in eight
    passes over the table; the gradient made dense first, TensorFlow's fused kernel does
    it in one. The result is the same but for rounding.
    """

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices, **kwargs):
        whole = tf.math.unsorted_segment_sum(grad, indices, handle.shape[0])
        return self._resource_apply_dense(whole, handle, **kwargs)
