"""A wide & deep model from tf.keras layers, under its own model_fn."""

from __future__ import annotations

from collections.abc import Mapping

from model_fns import adapter, feature_layers, heads, hparams, layers
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import Constants, Declaration


class WideDeepModel(tf_keras.Model):
    """Logits = bias + one weight per category (wide) + a network (deep).

    Call it with raw columns (name to [batch]); it returns [batch, outputs].

    Args:
      outputs: Number of logits.
      seed: For initial weights and dropout.
    """

    def __init__(
        self,
        declaration: Declaration,
        constants: Constants,
        settings: hparams.KerasWideDeep,
        outputs: int,
        seed: int,
    ):
        super().__init__(name="wide_deep")
        self._encoder = feature_layers.FeatureEncoder(
            declaration, constants, name="features"
        )
        self._wide = feature_layers.WideLogits(self._encoder, outputs, name="wide")
        self._deep = feature_layers.DeepVector(self._encoder, seed, name="deep")
        self._hidden = [
            _HiddenLayer(width, settings, seed + 1000 * (i + 1), name=f"hidden_{i}")
            for i, width in enumerate(settings.hidden_units)
        ]
        self._logits = tf_keras.layers.Dense(
            outputs,
            kernel_initializer=tf_keras.initializers.GlorotUniform(seed),
            use_bias=False,
            dtype="float32",
            name="logits",
        )

    def call(self, raw: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        encoded = self._encoder(raw)
        logits = self._wide(encoded)
        if self._deep.empty:
            return logits
        hidden = self._deep(encoded)
        for layer in self._hidden:
            hidden = layer(hidden, training=training)
        return logits + self._logits(hidden)


class _HiddenLayer(tf_keras.layers.Layer):
    """Dense, BatchNormalization, ReLU, dropout."""

    def __init__(self, width: int, settings: hparams.KerasWideDeep, seed: int, name):
        super().__init__(name=name)
        self._dense = tf_keras.layers.Dense(
            width,
            kernel_initializer=tf_keras.initializers.GlorotUniform(seed),
            use_bias=False,
        )
        self._norm = tf_keras.layers.BatchNormalization(
            momentum=settings.batch_norm_momentum
        )
        self._dropout = layers.StepDropout(settings.dropout, seed)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        hidden = self._norm(self._dense(inputs), training=training)
        return self._dropout(tf.nn.relu(hidden), training=training)


def build(
    declaration: Declaration,
    constants: Constants,
    settings: hparams.KerasWideDeep,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns an Estimator over `WideDeepModel`."""
    head = heads.head(declaration, settings)
    model_fn = adapter.model_fn_from_keras(
        lambda: WideDeepModel(
            declaration,
            constants,
            settings,
            head.logits_dimension,
            config.tf_random_seed,
        ),
        settings,
        head,
    )
    return estimator.Estimator(model_fn, config=config)
