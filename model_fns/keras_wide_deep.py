"""A wide & deep model from tf.keras layers, under its own model_fn."""

from __future__ import annotations

from collections.abc import Mapping

from model_fns import adapter, heads, hparams, layers
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import Constants, Declaration, Numeric, Task


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
        features = declaration.features.values()
        self._ids = layers.CategoryIds(declaration, constants, name="ids")
        wide_l2 = tf_keras.regularizers.L2(settings.l2) if settings.l2 else None
        self._wide = {
            f.name: tf_keras.layers.Embedding(
                self._ids.sizes[f.name],
                outputs,
                embeddings_initializer="zeros",
                embeddings_regularizer=wide_l2,
                name=f"wide_{f.name}",
            )
            for f in features
            if not isinstance(f, Numeric) and f.use in ("wide", "both")
        }
        self._embeddings = {
            f.name: tf_keras.layers.Embedding(
                self._ids.sizes[f.name],
                f.embedding,
                embeddings_initializer=tf_keras.initializers.TruncatedNormal(
                    stddev=f.embedding**-0.5, seed=seed + i
                ),
                name=f"embedding_{f.name}",
            )
            for i, f in enumerate(features)
            if not isinstance(f, Numeric)
            and f.use in ("deep", "both")
            and f.embedding is not None
        }
        self._one_hot = [
            f.name
            for f in features
            if not isinstance(f, Numeric)
            and f.use in ("deep", "both")
            and f.embedding is None
        ]
        numbers = [f for f in features if isinstance(f, Numeric)]
        deep_numbers = [f for f in numbers if f.use in ("deep", "both")]
        wide_numbers = [f for f in numbers if f.use in ("wide", "both")]
        self._deep_numbers = _scaled_numbers(deep_numbers, constants, "deep_numbers")
        self._wide_numbers = _scaled_numbers(wide_numbers, constants, "wide_numbers")
        self._wide_dense = tf_keras.layers.Dense(
            outputs,
            kernel_initializer="zeros",
            kernel_regularizer=wide_l2,
            use_bias=False,
            name="wide_dense",
        )
        self._hidden = [
            _HiddenLayer(width, settings, seed + 1000 * (i + 1), name=f"hidden_{i}")
            for i, width in enumerate(settings.hidden_units)
        ]
        self._logits = tf_keras.layers.Dense(
            outputs,
            kernel_initializer=tf_keras.initializers.GlorotUniform(seed),
            use_bias=False,
            name="logits",
        )
        # Not in a layer of either part, since each part may be empty.
        self._bias = self.add_weight("wide_deep/bias", [outputs], initializer="zeros")

    def call(self, raw: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        ids = self._ids(raw)
        parts = [layer(ids[name]) for name, layer in self._wide.items()]
        if self._wide_numbers:
            parts.append(self._wide_dense(self._wide_numbers(raw)))
        deep = [layer(ids[name]) for name, layer in self._embeddings.items()]
        deep += [tf.one_hot(ids[name], self._ids.sizes[name]) for name in self._one_hot]
        if self._deep_numbers:
            deep.append(self._deep_numbers(raw))
        if deep:
            hidden = tf.concat(deep, axis=1)
            for layer in self._hidden:
                hidden = layer(hidden, training=training)
            parts.append(self._logits(hidden))
        return tf.add_n(parts) + self._bias


def _scaled_numbers(features, constants, name) -> layers.ScaledNumbers | None:
    return layers.ScaledNumbers(features, constants, name=name) if features else None


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
    label = declaration.label
    outputs = len(label.classes) if label.task is Task.MULTI_CLASS else 1
    model_fn = adapter.model_fn_from_keras(
        lambda: WideDeepModel(
            declaration, constants, settings, outputs, config.tf_random_seed
        ),
        # A function, so that going on from a checkpoint can use another rate.
        lambda: tf_keras.optimizers.legacy.Adam(lambda: settings.learning_rate),
        heads.head(declaration),
    )
    return estimator.Estimator(model_fn, config=config)
