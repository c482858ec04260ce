"""From a Keras model of features to a registry entry's `build`."""

from __future__ import annotations

from collections.abc import Callable

from model_fns import adapter, heads
from pipeline.compat import estimator, tf_keras


def builder(
    model: Callable[..., tf_keras.Model],
) -> Callable[..., estimator.Estimator]:
    """Returns the function (declaration, constants, settings, config) -> Estimator.

    Args:
      model: Makes the Keras model from declaration, constants, settings (of a
        dataclass that extends `hparams.Custom`), outputs (the number of logits) and
        seed. The model takes raw columns by name, [batch] each, and returns
        [batch, outputs].
    """

    def build(declaration, constants, settings, config) -> estimator.Estimator:
        head = heads.head(declaration, settings)
        model_fn = adapter.model_fn_from_keras(
            lambda: model(
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

    return build
