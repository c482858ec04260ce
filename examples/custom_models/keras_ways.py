"""Three ways of writing a Keras model for `--model=module:function`.

Each returns logits for the declared label and is not compiled: the pipeline's head
gives loss, metrics and exports, and `--hparams` takes optimizer, schedule and loss.
Batch normalisation and dropout are told apart from training by the adapter.
"""

from __future__ import annotations

from model_fns import feature_layers, heads
from pipeline.compat import tf_keras

_LAYERS = tf_keras.layers


class _Inputs(_LAYERS.Layer):
    """All declared features side by side: [batch, width]."""

    def __init__(self, declaration, constants):
        super().__init__(name="inputs")
        self._encoder = feature_layers.FeatureEncoder(declaration, constants)
        self._vector = feature_layers.DeepVector(self._encoder, seed=1)

    def call(self, raw):
        return self._vector(self._encoder(raw))


def sequential(declaration, constants, params):
    """A stack of layers."""
    return tf_keras.Sequential(
        [
            _Inputs(declaration, constants),
            _LAYERS.Dense(params.get("width", 32)),
            _LAYERS.BatchNormalization(),
            _LAYERS.ReLU(),
            _LAYERS.Dropout(params.get("dropout", 0.1)),
            _LAYERS.Dense(heads.head(declaration).logits_dimension),
        ]
    )


def functional(declaration, constants, params):
    """Blocks around which their input is led (skip connections)."""
    width = params.get("width", 32)
    raw = {
        column.name: tf_keras.Input([], name=f"column_{i}", dtype=_dtype(column))
        for i, column in enumerate(declaration.input_columns)
    }
    hidden = _LAYERS.Dense(width)(_Inputs(declaration, constants)(raw))
    for _ in range(params.get("blocks", 2)):
        block = _LAYERS.Dense(width, use_bias=False)(hidden)
        block = _LAYERS.ReLU()(_LAYERS.BatchNormalization()(block))
        hidden = _LAYERS.Add()([hidden, block])
    logits = _LAYERS.Dense(heads.head(declaration).logits_dimension)(hidden)
    return tf_keras.Model(raw, logits)


def _dtype(column) -> str:
    return {"int": "int64", "float": "float32", "string": "string"}[column.type.value]


class _Subclassed(tf_keras.Model):
    def __init__(self, declaration, constants, params):
        super().__init__()
        self._inputs = _Inputs(declaration, constants)
        self._hidden = _LAYERS.Dense(params.get("width", 32), "relu")
        self._dropout = _LAYERS.Dropout(params.get("dropout", 0.1))
        self._logits = _LAYERS.Dense(heads.head(declaration).logits_dimension)

    def call(self, raw, training=False):
        hidden = self._dropout(self._hidden(self._inputs(raw)), training=training)
        return self._logits(hidden)


def subclassed(declaration, constants, params):
    """A class of its own."""
    return _Subclassed(declaration, constants, params)
