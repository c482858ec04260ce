"""Further metrics for any Estimator, by name, through `estimator.add_metrics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from model_fns import label_ids, metric_names, user_models
from model_fns.metric_names import Metric
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import Declaration, Label, Labels, Task, UserError

_keras = tf_keras.metrics


class _F1(_keras.Metric):
    """2 precision recall / (precision + recall), 0 where both are 0."""

    def __init__(self, threshold: float):
        super().__init__(name="f1")
        self._threshold = threshold
        self._sums = self.add_weight("sums", [3], initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        wanted = tf.cast(y_true, tf.float32)
        found = tf.cast(y_pred > self._threshold, tf.float32)
        weights = tf.ones([1, 1])
        if sample_weight is not None:
            weights = tf.reshape(tf.cast(sample_weight, tf.float32), [-1, 1])
        parts = (wanted * found, found, wanted)
        return self._sums.assign_add(
            tf.stack([tf.reduce_sum(weights * part) for part in parts])
        )

    def result(self):
        hits, found, wanted = tf.unstack(self._sums.read_value())
        return tf.math.divide_no_nan(2 * hits, found + wanted)


def _make(metric: Metric, task: Task) -> _keras.Metric:
    threshold = 0.5 if metric.at is None else metric.at
    if task is Task.MULTI_CLASS:
        return {
            "accuracy": _keras.SparseCategoricalAccuracy,
            "log_loss": _keras.SparseCategoricalCrossentropy,
            "top": lambda: _keras.SparseTopKCategoricalAccuracy(int(metric.at)),
        }[metric.name]()
    return {
        "accuracy": lambda: _keras.BinaryAccuracy(threshold=threshold),
        "precision": lambda: _keras.Precision(threshold),
        "recall": lambda: _keras.Recall(threshold),
        "f1": lambda: _F1(threshold),
        "auc": _keras.AUC,
        "auc_pr": lambda: _keras.AUC(curve="PR"),
        "log_loss": _keras.BinaryCrossentropy,
        "mse": _keras.MeanSquaredError,
        "rmse": _keras.RootMeanSquaredError,
        "mae": _keras.MeanAbsoluteError,
        "mape": _keras.MeanAbsolutePercentageError,
    }[metric.name]()


def _output(predictions: Any, prefix: str, label: Label) -> tf.Tensor:
    """Returns what a head predicts of a label, as metrics take it."""
    name = prefix + ("predictions" if label.classes is None else "probabilities")
    if not isinstance(predictions, Mapping) or name not in predictions:
        raise UserError(
            f"--metrics: the model gives no output {name}, from which they are"
            " computed; use a metric of your own (package.module:function)"
        )
    value = predictions[name]
    return value[:, 1:] if label.task is Task.BINARY else value


def _of_label(
    metrics: Sequence[Metric], label: Label, labels, output, weights
) -> dict[str, _keras.Metric]:
    """Returns the metrics that suit a label, with the batch counted in."""
    ids = label_ids.of_label(labels, label)
    if label.separator is None:
        ids = ids[:, tf.newaxis]
    found = {}
    for metric in metrics:
        if not metric.own and label.task in metric_names.TASKS[metric.name]:
            made = _make(metric, label.task)
            made.update_state(ids, output, sample_weight=weights)
            found[str(metric)] = made
    return found


def _metric_fn(metrics: Sequence[Metric], declaration: Declaration):
    named = declaration.label
    own = [user_models.find(m.name, "--metrics") for m in metrics if m.own]

    def metric_fn(labels, predictions, features, config):
        found = {}
        weights = features.get(declaration.weight)
        labelled = {"": named}
        if isinstance(named, Labels):
            labelled = {f"{name}/": label for name, label in named.of.items()}
        for prefix, label in labelled.items():
            if not any(
                not m.own and label.task in metric_names.TASKS[m.name] for m in metrics
            ):
                continue
            value = labels[prefix[:-1]] if prefix else labels
            output = _output(predictions, prefix, label)
            ending = f"/{prefix[:-1]}" if prefix else ""
            for name, made in _of_label(metrics, label, value, output, weights).items():
                found[name + ending] = made
        given = {
            "labels": label_ids.of_all(labels, declaration),
            "predictions": predictions,
            "features": features,
            "config": config,
        }
        for function in own:
            accepted = user_models.accepted(function, tuple(given), "--metrics")
            found.update(function(**{k: given[k] for k in accepted}))
        return found

    return metric_fn


def add(
    trained: estimator.Estimator, metrics: Sequence[Metric], declaration: Declaration
) -> estimator.Estimator:
    """Returns an Estimator that computes further metrics when it is evaluated.

    Rows' weights count in them. A metric of the user's own is a function as
    `estimator.add_metrics` takes it, of those of labels, predictions, features and
    config that it names; labels come as ids of classes. It returns a dict of
    tf_keras metrics or of pairs as tf.compat.v1.metrics makes them.

    Raises:
      UserError: A function of the user's cannot be found.
    """
    if not metrics:
        return trained
    return estimator.add_metrics(trained, _metric_fn(metrics, declaration))
