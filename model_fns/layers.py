"""tf.keras layers that models under an Estimator need; they know no features."""

from __future__ import annotations

from pipeline.compat import tf, tf_keras


class StepDropout(tf_keras.layers.Layer):
    """Dropout whose mask is a function of the seed and the global step.

    Under an Estimator, training that was interrupted and goes on from a checkpoint
    then draws the masks which an uninterrupted run would have drawn; Keras' Dropout
    begins its random stream anew in every session. Outside of an Estimator, where
    there is no global step, it is ordinary dropout.

    Args:
      rate: Share of values set to 0 in training, in [0, 1).
      seed: With the step it decides the mask; give each layer another one.
    """

    def __init__(self, rate: float, seed: int, **kwargs):
        super().__init__(**kwargs)
        self._rate = rate
        self._seed = seed

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if not training or self._rate == 0:
            return inputs
        step = tf.compat.v1.train.get_global_step()
        if step is None:
            return tf.nn.dropout(inputs, self._rate, seed=self._seed)
        seed = tf.stack([tf.constant(self._seed, tf.int64), tf.cast(step, tf.int64)])
        return tf.nn.experimental.stateless_dropout(inputs, self._rate, seed=seed)
