"""tf.keras layers that the tabular models are made of; they know no features."""

from __future__ import annotations

from model_fns import layers, tabular_hparams
from pipeline.compat import tf, tf_keras


def glorot(seed: int) -> tf_keras.initializers.Initializer:
    return tf_keras.initializers.GlorotUniform(seed)


class _HiddenLayer(tf_keras.layers.Layer):
    """Dense, BatchNormalization where it is asked for, ReLU, dropout."""

    def __init__(self, width: int, settings: tabular_hparams.Network, seed: int, name):
        super().__init__(name=name)
        self._dense = tf_keras.layers.Dense(
            width, kernel_initializer=glorot(seed), use_bias=not settings.batch_norm
        )
        self._norm = None
        if settings.batch_norm:
            self._norm = tf_keras.layers.BatchNormalization(
                momentum=settings.batch_norm_momentum
            )
        self._dropout = layers.StepDropout(settings.dropout, seed)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        hidden = self._dense(inputs)
        if self._norm is not None:
            hidden = self._norm(hidden, training=training)
        return self._dropout(tf.nn.relu(hidden), training=training)


class Network(tf_keras.layers.Layer):
    """The hidden layers of a network: [batch, any width] to [batch, last width].

    Args:
      settings: Widths, dropout, batch normalisation.
      seed: For weights and dropout.
    """

    def __init__(self, settings: tabular_hparams.Network, seed: int, **kwargs):
        super().__init__(**kwargs)
        self._layers = [
            _HiddenLayer(width, settings, seed + 1000 * (i + 1), name=f"hidden_{i}")
            for i, width in enumerate(settings.hidden_units)
        ]

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        for layer in self._layers:
            inputs = layer(inputs, training=training)
        return inputs


class CrossLayer(tf_keras.layers.Layer):
    """A cross layer of DCN-v2 (Wang et al. 2021, arXiv:2008.13535, section 3).

    With x0 the features, x the layer's input and * the product by element, it returns

        x0 * (W x + b) + x                               rank 0: a full matrix
        x0 * (U V'x + b) + x                             a rank: U and V have so many
                                                         columns
        x0 * (sum_i g_i(x) U_i t(C_i t(V_i'x)) + b) + x  experts: a mixture

    with t the hyperbolic tangent and g the softmax of a linear gate. (The paper writes
    x0 and b inside of the sum over the experts; it is the same, for g adds up to 1.)

    Args:
      rank: Columns of U and V; 0 for a full W.
      experts: Number of U_i, C_i, V_i.
      seed: For the weights.
    """

    def __init__(self, rank: int, experts: int, seed: int, **kwargs):
        super().__init__(**kwargs)
        self._rank = rank
        self._experts = experts
        self._seed = seed

    def _weight(self, name: str, place: int, *shape: int) -> tf.Variable:
        return self.add_weight(
            name, list(shape), initializer=glorot(self._seed + place)
        )

    def build(self, shapes) -> None:
        width = int(shapes[0][-1])
        experts, rank = self._experts, self._rank
        if not rank:
            self._full = self._weight("kernel", 0, width, width)
        else:
            self._down = self._weight("down/kernel", 1, experts, width, rank)
            self._up = self._weight("up/kernel", 2, experts, rank, width)
        if experts > 1:
            self._inner = self._weight("inner/kernel", 3, experts, rank, rank)
            self._gate = self._weight("gate/kernel", 4, width, experts)
        self._bias = self.add_weight("bias", [width], initializer="zeros")
        super().build(shapes)

    def _product(self, x: tf.Tensor) -> tf.Tensor:
        if not self._rank:
            return x @ self._full
        inner = tf.einsum("bw,ewr->ber", x, self._down)
        if self._experts == 1:
            return tf.einsum("ber,erw->bw", inner, self._up)
        inner = tf.tanh(tf.einsum("ber,ers->bes", tf.tanh(inner), self._inner))
        gates = tf.nn.softmax(x @ self._gate)
        return tf.einsum("be,ber,erw->bw", gates, inner, self._up)

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns [batch, width], given x0 and x of that shape."""
        first, x = inputs
        return first * (self._product(x) + self._bias) + x


def pairwise_products(vectors: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the inner products of all pairs of vectors.

    The second-order term of a factorisation machine (Rendle 2010, equation 1), by its
    lemma 3.1: half of (the square of the sum - the sum of the squares), so that the
    time is linear in the number of fields.

    Args:
      vectors: float32 [batch, fields, outputs, width].

    Returns:
      float32 [batch, outputs].
    """
    squared_sum = tf.square(tf.reduce_sum(vectors, axis=1))
    sum_of_squares = tf.reduce_sum(tf.square(vectors), axis=1)
    return 0.5 * tf.reduce_sum(squared_sum - sum_of_squares, axis=-1)


def logits(outputs: int, seed: int) -> tf_keras.layers.Layer:
    """Returns the last layer, [batch, width] to [batch, outputs], without a bias.

    The wide part, to which its outputs are added, has one.
    """
    return tf_keras.layers.Dense(
        outputs,
        kernel_initializer=glorot(seed),
        use_bias=False,
        # The loss and the predictions, whatever the global policy.
        dtype="float32",
        name="logits",
    )
