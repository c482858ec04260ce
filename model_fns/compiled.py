"""A compiled Keras model as a model_fn, with its own loss, optimizer and metrics.

`estimator.model_to_estimator` is not used: it refuses subclassed models or drops their
weights, and trains from a copy of the layers, which loses what their configuration
does not hold.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from model_fns import adapter, optimizers
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError

_v1 = tf.compat.v1
_containers = importlib.import_module(f"{tf_keras.__name__}.src.engine.compile_utils")


def _converted(optimizer: tf_keras.optimizers.Optimizer) -> optimizers.MakeOptimizer:
    """Returns what makes an optimizer of the newer kind as one of the older."""
    name = type(optimizer).__name__
    kind = getattr(optimizers.legacy, name, None)
    if kind is None:
        optimizers.check(optimizer)
    if optimizer.weight_decay or optimizer.use_ema:
        raise UserError(
            f"the optimizer {name} has weight_decay or use_ema, which Estimators cannot"
            f" do; use tf_keras.optimizers.legacy.{name} without them"
        )
    settings = optimizer.get_config()
    known = kind(name=name).get_config().keys() - {"decay"}
    limits = ("clipnorm", "clipvalue", "global_clipnorm")
    settings = {
        key: value
        for key, value in settings.items()
        if key in known or (key in limits and value is not None)
    }
    if isinstance(
        optimizer._learning_rate, tf_keras.optimizers.schedules.LearningRateSchedule
    ):
        settings["learning_rate"] = optimizer._learning_rate
    return lambda: kind(**settings)


def _optimizer(
    model: tf_keras.Model, convert: optimizers.MakeOptimizer | None
) -> optimizers.Optimizer:
    """Returns the optimizer for a graph; its rate is not kept in checkpoints."""
    optimizer = convert() if convert else model.optimizer
    optimizers.check(optimizer)
    rate = getattr(optimizer, "_hyper", {}).get("learning_rate")
    if isinstance(rate, (int, float, np.number)):
        # Its setter takes no function in the place of a NumPy number.
        optimizer._hyper["learning_rate"] = lambda: float(rate)
    return optimizer


def _cloned(metrics: Any) -> Any:
    """Copies metrics: compiling in a graph has used them on placeholders."""
    return tf.nest.map_structure(
        lambda metric: (
            type(metric).from_config(metric.get_config())
            if isinstance(metric, tf_keras.metrics.Metric)
            else metric
        ),
        metrics,
    )


def _weights(model: tf_keras.Model) -> Sequence:
    """Returns the weights it came with: initial ones, or those that were loaded."""
    return model.get_weights() if model.built and model.weights else []


def _init_fn(model: tf_keras.Model, values: Sequence) -> Callable | None:
    """Returns what sets the weights where there is no checkpoint yet."""
    if not values:
        return None
    variables = list(model.weights)
    places = [_v1.placeholder(v.dtype.base_dtype, v.shape) for v in variables]
    assign = [
        _v1.assign(variable, place)
        for variable, place in zip(variables, places, strict=True)
    ]

    def init_fn(scaffold, session):
        del scaffold
        session.run(assign, dict(zip(places, values, strict=True)))

    return init_fn


def _named(outputs: Any, model: tf_keras.Model) -> dict[str, tf.Tensor]:
    if isinstance(outputs, Mapping):
        return dict(outputs)
    found = tf.nest.flatten(outputs)
    if len(found) == 1:
        return {"predictions": found[0]}
    return dict(zip(model.output_names, found, strict=True))


def model_fn_from_compiled(
    build_model: Callable[[], tf_keras.Model], weight: str | None, seed: int
) -> Callable[..., estimator.EstimatorSpec]:
    """Wraps a compiled Keras model of any kind.

    Loss, metrics and weights are those of Keras' `fit` and `evaluate`: a row's weight
    counts in the loss and in `weighted_metrics`. Predictions are the model's outputs:
    "predictions" of one, else by the names of the outputs.

    Args:
      build_model: Makes the compiled model; called once by itself, for its optimizer
        and the weights it comes with, and in the graph of each mode.
      weight: The feature with the rows' weights, [batch].
      seed: Of the initial weights.
    """
    tf_keras.utils.set_random_seed(seed)
    with tf.init_scope():
        first = build_model()
    convert = None
    if isinstance(first.optimizer, tf_keras.optimizers.Optimizer):
        convert = _converted(first.optimizer)
    values = _weights(first)

    def model_fn(features, labels, mode) -> estimator.EstimatorSpec:
        training = mode == estimator.ModeKeys.TRAIN
        model = build_model()
        inputs = {name: value for name, value in features.items() if name != weight}
        outputs = model(inputs, training=training)
        predictions = _named(outputs, model)
        if mode == estimator.ModeKeys.PREDICT:
            return estimator.EstimatorSpec(
                mode,
                predictions,
                export_outputs={
                    "serving_default": estimator.export.PredictOutput(predictions)
                },
            )
        names = {"output_names": getattr(model, "output_names", None)}
        weights = features.get(weight)
        loss = _containers.LossesContainer(
            model.loss, getattr(model, "loss_weights", None), **names
        )(
            labels,
            outputs,
            weights,
            regularization_losses=adapter.of_this_call(model.losses, features),
        )
        if training:
            variables = model.trainable_variables
            step = optimizers.train_op(_optimizer(model, convert), loss, variables)
            updates = adapter.of_this_call(model.updates, features)
            _v1.summary.scalar("loss", loss)
            return estimator.EstimatorSpec(
                mode,
                predictions,
                loss,
                tf.group(step, *updates),
                scaffold=_v1.train.Scaffold(init_fn=_init_fn(model, values)),
            )
        metrics = _containers.MetricsContainer(
            _cloned(model._compile_metrics),
            _cloned(model._compile_weighted_metrics),
            **names,
        )
        metrics.update_state(labels, outputs, weights)
        return estimator.EstimatorSpec(
            mode,
            predictions,
            loss,
            eval_metric_ops={m.name: m for m in metrics.metrics},
        )

    return model_fn
