"""The premade wide & deep Estimators."""

from __future__ import annotations

from model_fns import feature_columns, hparams
from pipeline.compat import estimator, tf_keras
from pipeline.types import Constants, Declaration, Task

_OPTIMIZERS = tf_keras.optimizers.legacy


def _ftrl(settings: hparams.WideDeep) -> tf_keras.optimizers.legacy.Ftrl:
    # Functions: numbers would become variables, and training that goes on from a
    # checkpoint would keep the old ones whatever the settings say.
    optimizer = _OPTIMIZERS.Ftrl(lambda: settings.wide_learning_rate)
    optimizer.l1_regularization_strength = lambda: settings.wide_l1
    optimizer.l2_regularization_strength = lambda: settings.wide_l2
    return optimizer


def _premade(
    declaration: Declaration,
    constants: Constants,
    settings: hparams.WideDeep,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    wide, deep = feature_columns.compile_columns(declaration, constants)
    arguments = {
        "linear_feature_columns": wide,
        # Callables: an optimizer instance fails over replicas and, on a remote
        # cluster, leaves the global step where it was.
        "linear_optimizer": lambda: _ftrl(settings),
        "dnn_feature_columns": deep,
        "dnn_optimizer": lambda: _OPTIMIZERS.Adam(lambda: settings.learning_rate),
        "dnn_hidden_units": list(settings.hidden_units),
        "dnn_dropout": settings.dropout or None,
        "batch_norm": settings.batch_norm,
        "weight_column": feature_columns.WEIGHT if declaration.weight else None,
        "config": config,
    }
    label = declaration.label
    if label.task is Task.REGRESSION:
        return estimator.DNNLinearCombinedRegressor(**arguments)
    return estimator.DNNLinearCombinedClassifier(
        n_classes=len(label.classes), label_vocabulary=list(label.classes), **arguments
    )


def build(
    declaration: Declaration,
    constants: Constants,
    settings: hparams.WideDeep,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns the premade Estimator for the declared label.

    Its model_fn is the premade one, given `feature_columns.inputs` of the features.
    """

    def model_fn(features, labels, mode, config):
        premade = _premade(declaration, constants, settings, config)
        inputs = feature_columns.inputs(features, declaration)
        return premade.model_fn(inputs, labels, mode, config)

    return estimator.Estimator(model_fn, config=config)
