"""The deep & cross network, version 2 (Wang et al. 2021, arXiv:2008.13535)."""

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


class DcnModel(tf_keras.Model):
    """Cross layers over the deep part's features, beside or below a network.

    The wide part's weights are added to the logits, which the paper has not: features
    that are declared wide, such as crosses, would have no effect otherwise.

    Call it with raw columns (name to [batch]); it returns [batch, outputs].

    Args:
      outputs: Number of logits.
      seed: For initial weights and dropout.
    """

    def __init__(
        self,
        declaration: Declaration,
        constants: Constants,
        settings: tabular_hparams.Dcn,
        outputs: int,
        seed: int,
    ):
        super().__init__(name="dcn")
        self._stacked = settings.structure == "stacked"
        self._encoder = feature_layers.FeatureEncoder(
            declaration, constants, name="features"
        )
        self._wide = feature_layers.WideLogits(self._encoder, outputs, name="wide")
        self._deep = feature_layers.DeepVector(self._encoder, seed, name="deep")
        self._crosses = [
            tabular_layers.CrossLayer(
                settings.rank, settings.experts, seed + 100 * (i + 1), name=f"cross_{i}"
            )
            for i in range(settings.cross_layers)
        ]
        self._network = tabular_layers.Network(settings, seed, name="network")
        self._logits = tabular_layers.logits(outputs, seed)

    def call(self, raw: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        encoded = self._encoder(raw)
        logits = self._wide(encoded)
        if self._deep.empty:
            return logits
        first = crossed = self._deep(encoded)
        for cross in self._crosses:
            crossed = cross((first, crossed))
        if self._stacked:
            hidden = self._network(crossed, training=training)
        else:
            network = self._network(first, training=training)
            hidden = tf.concat([crossed, network], axis=1)
        embeddings.keep(hidden)
        return logits + self._logits(hidden)


build = tabular.builder(DcnModel)
"""Returns an Estimator over `DcnModel`."""
