"""A wide & deep model from tf.keras layers (Cheng et al. 2016, arXiv:1606.07792)."""

from __future__ import annotations

from collections.abc import Mapping

from model_fns import (
    embeddings,
    feature_layers,
    tabular,
    tabular_hparams,
    tabular_layers,
)
from pipeline.compat import tf, tf_keras
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
        settings: tabular_hparams.Network,
        outputs: int,
        seed: int,
    ):
        super().__init__(name="wide_deep")
        self._encoder = feature_layers.FeatureEncoder(
            declaration, constants, name="features"
        )
        self._wide = feature_layers.WideLogits(self._encoder, outputs, name="wide")
        self._deep = feature_layers.DeepVector(self._encoder, seed, name="deep")
        self._hidden = tabular_layers.Network(settings, seed, name="network")
        self._logits = tabular_layers.logits(outputs, seed)

    def call(self, raw: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        encoded = self._encoder(raw)
        logits = self._wide(encoded)
        if self._deep.empty:
            return logits
        hidden = self._hidden(self._deep(encoded), training=training)
        embeddings.keep(hidden)
        return logits + self._logits(hidden)


build = tabular.builder(WideDeepModel)
"""Returns an Estimator over `WideDeepModel`."""
