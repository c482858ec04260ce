"""The features as a model sees them: ids and scaled numbers, for debugging.

It is the encoder of the models built from layers. Feature columns come down to the same
functions, so it holds for premade Estimators too.
"""

from __future__ import annotations

from collections.abc import Mapping

from export.saved_model import Transform
from model_fns import feature_layers
from model_fns.tables import Weighted
from pipeline.compat import tf
from pipeline.types import Constants, Declaration


def of(declaration: Declaration, constants: Constants) -> Transform:
    """Returns a function from columns [batch] to features.

    Its outputs are, by feature name, int64 ids [batch]; float32 [batch, 1] for a
    number; float32 [batch, height, width, channels] for an image. Ids of a feature with
    several values a row are [batch, most in a row], filled up with -1. Weights of ids
    are float32 of the same shape, filled up with 0, and named `FEATURE/weights`.
    """

    def answer(columns: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        encoder = feature_layers.FeatureEncoder(
            declaration, constants, name="transform"
        )
        found = {}
        for name, value in encoder(columns).items():
            if isinstance(value, Weighted):
                found[f"{name}/weights"] = _dense(value.weights, 0.0)
                value = value.ids
            found[name] = _dense(value, -1)
        return found

    return answer


def _dense(value: tf.Tensor | tf.RaggedTensor, filling: float) -> tf.Tensor:
    if isinstance(value, tf.RaggedTensor):
        return value.to_tensor(tf.cast(filling, value.dtype))
    return value
