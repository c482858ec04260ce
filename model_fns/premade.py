"""The premade Estimators over feature columns, with the head that fits the label."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from model_fns import (
    curves,
    embeddings,
    feature_columns,
    heads,
    optimizers,
    premade_hparams,
)
from pipeline.compat import estimator
from pipeline.types import Constants, Declaration, UserError, is_number


def wrapped(
    make_premade: Callable[[], estimator.Estimator],
    declaration: Declaration,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns an Estimator that gives `feature_columns.inputs` to a premade model_fn.

    Args:
      make_premade: Called in the graph of each mode.
    """

    def model_fn(features, labels, mode, config):
        inputs = feature_columns.inputs(features, declaration)
        spec = make_premade().model_fn(inputs, labels, mode, config)
        if mode == estimator.ModeKeys.PREDICT:
            embeddings.keep_of_premade()
        return spec

    return estimator.Estimator(model_fn, config=config)


def _head(declaration: Declaration, settings):
    return heads.head(declaration, settings, feature_columns.WEIGHT)


def _ftrl(
    learning_rate: Callable[[], float], l1: Callable, l2: Callable
) -> optimizers.legacy.Ftrl:
    # Functions: numbers would become variables, and training that goes on from a
    # checkpoint would keep the old ones whatever the settings say.
    optimizer = optimizers.legacy.Ftrl(learning_rate)
    optimizer.l1_regularization_strength = l1
    optimizer.l2_regularization_strength = l2
    return optimizer


def linear_columns(declaration: Declaration, constants: Constants) -> list:
    """Returns the columns of a linear model: the wide part, and every number.

    Raises:
      UserError: There are none.
    """
    features = {
        name: dataclasses.replace(f, use="both") if is_number(f) else f
        for name, f in declaration.features.items()
    }
    declaration = dataclasses.replace(declaration, features=features)
    wide, _ = feature_columns.compile_columns(declaration, constants)
    if not wide:
        raise UserError(
            "no feature is for the wide part or a number, so a linear model has"
            " nothing to read; give a feature `use: both`"
        )
    return wide


def build_linear(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.Linear,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns a premade linear Estimator over the wide part and all numbers."""
    columns = linear_columns(declaration, constants)
    head = _head(declaration, settings)

    # Callables: an optimizer instance fails over replicas and, on a remote cluster,
    # leaves the global step where it was.
    def optimizer():
        return curves.watched(
            _ftrl(
                lambda: settings.learning_rate, lambda: settings.l1, lambda: settings.l2
            )
        )

    return wrapped(
        lambda: estimator.LinearEstimator(
            head, columns, optimizer=optimizer, config=config
        ),
        declaration,
        config,
    )


def build_dnn(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.Dnn,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns a premade network over the deep part.

    Raises:
      UserError: No feature is for the deep part.
    """
    _, columns = feature_columns.compile_columns(declaration, constants)
    if not columns:
        raise UserError(
            "no feature is for the deep part, so a network has nothing to read; give a"
            " feature `use: both` or `use: deep`"
        )
    head = _head(declaration, settings)
    return wrapped(
        lambda: estimator.DNNEstimator(
            head,
            list(settings.hidden_units),
            columns,
            optimizer=lambda: curves.watched(optimizers.make(settings)),
            dropout=settings.dropout or None,
            batch_norm=settings.batch_norm,
            config=config,
        ),
        declaration,
        config,
    )


def build_wide_deep(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.WideDeep,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns a premade linear model and network whose logits are added up."""
    wide, deep = feature_columns.compile_columns(declaration, constants)
    head = _head(declaration, settings)

    def wide_optimizer():
        ftrl = _ftrl(
            lambda: settings.wide_learning_rate,
            lambda: settings.wide_l1,
            lambda: settings.wide_l2,
        )
        return curves.watched(ftrl, "wide")

    return wrapped(
        lambda: estimator.DNNLinearCombinedEstimator(
            head,
            linear_feature_columns=wide,
            linear_optimizer=wide_optimizer,
            dnn_feature_columns=deep,
            dnn_optimizer=lambda: curves.watched(optimizers.make(settings)),
            dnn_hidden_units=list(settings.hidden_units),
            dnn_dropout=settings.dropout or None,
            batch_norm=settings.batch_norm,
            config=config,
        ),
        declaration,
        config,
    )


class _FirstOnly(dict):
    """Features of which `items` shows the first only.

    BaselineEstimator compares the sizes of all features it is shown, and its variable's
    initialiser waits for the comparison, that is for rows before there can be any.
    """

    def items(self):
        return list(super().items())[:1]


def build_baseline(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.Baseline,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns an Estimator whose logits are a learned bias, whatever the features."""
    del constants
    head = heads.head(declaration, settings)

    def model_fn(features, labels, mode, config):
        premade = estimator.BaselineEstimator(
            head,
            optimizer=lambda: curves.watched(
                optimizers.legacy.Ftrl(lambda: settings.learning_rate)
            ),
            config=config,
        )
        return premade.model_fn(_FirstOnly(features), labels, mode, config)

    return estimator.Estimator(model_fn, config=config)
