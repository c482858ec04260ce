"""Metrics of predictions that can be counted again and again, as a bootstrap does.

They are computed in float64 from the rows themselves. Names are those of the Estimators'
own metrics; `auc` here is exact, where theirs is interpolated between 200 thresholds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from pipeline.exact_auc import ExactAuc
from pipeline.types import Task, UserError

_SMALLEST = 1e-7
"""Probabilities are kept so far from 0 and 1, as Keras does for log losses."""


@dataclasses.dataclass(frozen=True, eq=False)
class Truth:
    """What was to be predicted.

    Attributes:
      task: One that `names` knows.
      labels: [rows]: int64 number of the class, or float64.
      weights: float64 [rows], at least 0.
      slices: Column name to its values as text, [rows].
    """

    task: Task
    labels: np.ndarray
    weights: np.ndarray
    slices: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


def names(task: Task) -> tuple[str, ...]:
    """Returns the metrics of a task."""
    if task is Task.BINARY:
        return ("average_loss", "accuracy", "auc")
    if task is Task.MULTI_CLASS:
        return ("average_loss", "accuracy")
    if task is Task.REGRESSION:
        return ("average_loss", "rmse", "mae")
    raise UserError(
        f"retrain judges models of one label with one class or number a row; this is"
        f" {task.value}"
    )


def _log_loss(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    found = probabilities[np.arange(len(labels)), labels]
    return -np.log(np.clip(found, _SMALLEST, 1.0))


class Metric:
    """A metric of fixed predictions, for any weights of the rows.

    Args:
      name: One of `names`.
      truth: What was to be predicted.
      predictions: float64 [rows, classes], probabilities, or [rows], numbers.
    """

    def __init__(self, name: str, truth: Truth, predictions: np.ndarray):
        self._name = name
        if name == "auc":
            self._auc = ExactAuc(truth.labels == 1, predictions[:, 1])
            return
        self._values = _row_values(name, truth, predictions)

    def value(self, weights: np.ndarray) -> float:
        """Returns the metric; NaN where the weights leave nothing to tell."""
        if self._name == "auc":
            return self._auc.value(weights)
        total = weights.sum()
        if total <= 0:
            return float("nan")
        mean = float(np.dot(self._values, weights) / total)
        return float(np.sqrt(mean)) if self._name == "rmse" else mean


def _row_values(name: str, truth: Truth, predictions: np.ndarray) -> np.ndarray:
    if truth.task is Task.REGRESSION:
        error = predictions - truth.labels
        return np.abs(error) if name == "mae" else error**2
    if name == "accuracy":
        return (predictions.argmax(axis=1) == truth.labels).astype(np.float64)
    return _log_loss(truth.labels, predictions)


def evaluate(truth: Truth, predictions: np.ndarray) -> dict[str, float]:
    """Returns all metrics of predictions."""
    return {
        name: Metric(name, truth, predictions).value(truth.weights)
        for name in names(truth.task)
    }


def constant(truth: Truth) -> np.ndarray:
    """Returns the best predictions that are the same for every row.

    These know the labels that they are judged by, so they are a little better than any
    that were learned before.
    """
    total = truth.weights.sum()
    if truth.task is Task.REGRESSION:
        mean = np.dot(truth.labels, truth.weights) / total
        return np.full(len(truth.labels), mean)
    shares = np.bincount(truth.labels, truth.weights) / total
    if len(shares) < 2:
        shares = np.r_[shares, 0.0]
    return np.tile(shares, (len(truth.labels), 1))


def miscalibration(truth: Truth, predictions: np.ndarray) -> float:
    """Returns how far the mean prediction is from the mean label.

    Of classes, the largest difference of a class's share; of numbers, in standard
    deviations of the label (0 where the label is constant and met).
    """
    weights = truth.weights / truth.weights.sum()
    if truth.task is Task.REGRESSION:
        mean = float(np.dot(truth.labels, weights))
        spread = float(np.sqrt(np.dot((truth.labels - mean) ** 2, weights)))
        difference = abs(float(np.dot(predictions, weights)) - mean)
        return difference / spread if spread else float(difference > 0)
    shares = np.bincount(truth.labels, weights, predictions.shape[1])
    return float(np.abs(weights @ predictions - shares).max())
