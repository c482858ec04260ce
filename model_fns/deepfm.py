"""DeepFM, a factorisation machine with a network (Guo et al. 2017, arXiv:1703.04247)."""

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


class DeepFmModel(tf_keras.Model):
    """Logits = the wide part + products of pairs of features + a network.

    Each deep feature has a vector of one width (a number scales its vector), whatever
    its `embedding`; pairs (equation 2) and network (equation 4) read the same ones.
    Several logits have their own parts of each vector, so that each is a machine of
    its own over a common network. The wide part stands for the paper's first-order
    term.

    Call it with raw columns (name to [batch]); it returns [batch, outputs].

    Args:
      outputs: Number of logits.
      seed: For initial weights and dropout.
    """

    def __init__(
        self,
        declaration: Declaration,
        constants: Constants,
        settings: tabular_hparams.DeepFm,
        outputs: int,
        seed: int,
    ):
        super().__init__(name="deepfm")
        self._outputs = outputs
        self._width = settings.vector_width
        self._encoder = feature_layers.FeatureEncoder(
            declaration, constants, name="features"
        )
        self._empty = not self._encoder.used("deep")
        self._wide = feature_layers.WideLogits(self._encoder, outputs, name="wide")
        self._vectors = feature_layers.FieldVectors(
            self._encoder, outputs * self._width, seed, name="vectors"
        )
        self._network = tabular_layers.Network(settings, seed, name="network")
        self._logits = tabular_layers.logits(outputs, seed)

    def call(self, raw: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        encoded = self._encoder(raw)
        logits = self._wide(encoded)
        if self._empty:
            return logits
        vectors = self._vectors(encoded)
        # More than there are features where one has several numbers.
        fields = vectors.shape[1]
        pairs = tabular_layers.pairwise_products(
            tf.reshape(vectors, [-1, fields, self._outputs, self._width])
        )
        side_by_side = tf.reshape(vectors, [-1, fields * self._outputs * self._width])
        hidden = self._network(side_by_side, training=training)
        embeddings.keep(hidden)
        return logits + pairs + self._logits(hidden)


build = tabular.builder(DeepFmModel)
"""Returns an Estimator over `DeepFmModel`."""
