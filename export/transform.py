"""The features as a model sees them: ids and scaled numbers, for debugging.

It is the encoder of the models built from layers. Feature columns come down to the same
functions, so it holds for premade Estimators too.
"""

from __future__ import annotations

from export.saved_model import Transform
from model_fns import feature_layers
from pipeline.types import Constants, Declaration


def of(declaration: Declaration, constants: Constants) -> Transform:
    """Returns a function from columns [batch] to features.

    Its outputs are, by feature name, int64 ids [batch], or float32 [batch, 1] for a
    numeric feature.
    """
    return lambda columns: feature_layers.FeatureEncoder(
        declaration, constants, name="transform"
    )(columns)
