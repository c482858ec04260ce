"""Curves, tables and metrics of rows, computed in float64 from the rows themselves.

Rows' weights count everywhere. What is a mean is NaN where no weight is left.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pipeline.diagnostics.rows import Rows
from pipeline.exact_auc import ExactAuc
from pipeline.types import Task

THRESHOLDS = 201
"""Of curves: 0 to 1 in equal steps, as TensorBoard's plugin for PR curves has them."""
_BINS = 10
_MAX_CLASSES = 50
_SMALLEST = 1e-7
"""Probabilities are kept so far from 0, as Keras does for log losses."""


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    total = weight.sum()
    return float(values @ weight / total) if total > 0 else float("nan")


def auc(rows: Rows) -> float:
    """Returns the share of pairs of both classes in the right order, ties half."""
    return ExactAuc(rows.truth == 1, rows.score).value(rows.weight)


def metrics(rows: Rows) -> dict[str, float]:
    """Returns the metrics of a slice.

    Of numbers `average_loss` is the squared error, whatever their distribution.
    """
    weight = rows.weight
    if rows.label.task is Task.REGRESSION:
        error = rows.score - rows.truth
        squared = _mean(error**2, weight)
        return {
            "average_loss": squared,
            "rmse": float(np.sqrt(squared)),
            "mae": _mean(np.abs(error), weight),
            "mean_label": _mean(rows.truth, weight),
            "mean_prediction": _mean(rows.score, weight),
        }
    right = rows.score
    if rows.label.task is Task.BINARY:
        right = np.where(rows.truth == 1, rows.score, 1 - rows.score)
    found = {
        "average_loss": _mean(-np.log(np.clip(right, _SMALLEST, 1.0)), weight),
        "accuracy": _mean((rows.predicted == rows.truth).astype(np.float64), weight),
    }
    if rows.label.task is Task.BINARY:
        found["auc"] = auc(rows)
        found["mean_label"] = _mean(rows.truth, weight)
        found["mean_prediction"] = _mean(rows.score, weight)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """Weights of right and wrong decisions of two classes, at each of THRESHOLDS.

    A row is taken for positive from the threshold on (`score >= threshold`).

    Attributes:
      true_positives: float64 [THRESHOLDS]; likewise the others.
    """

    true_positives: np.ndarray
    false_positives: np.ndarray
    true_negatives: np.ndarray
    false_negatives: np.ndarray

    def precision(self) -> np.ndarray:
        """1 where nothing is taken for positive."""
        taken = self.true_positives + self.false_positives
        return np.divide(
            self.true_positives, taken, out=np.ones_like(taken), where=taken > 0
        )

    def recall(self) -> np.ndarray:
        total = self.true_positives + self.false_negatives
        return np.divide(
            self.true_positives, total, out=np.zeros_like(total), where=total > 0
        )

    def false_positive_rate(self) -> np.ndarray:
        total = self.false_positives + self.true_negatives
        return np.divide(
            self.false_positives, total, out=np.zeros_like(total), where=total > 0
        )


def counts(rows: Rows) -> Counts:
    """Returns the counts of two classes."""
    place = np.floor(np.clip(rows.score, 0, 1) * (THRESHOLDS - 1)).astype(int)

    def from_threshold_on(of_class: int) -> np.ndarray:
        weight = np.where(rows.truth == of_class, rows.weight, 0.0)
        # Of no rows it would be of whole numbers.
        held = np.bincount(place, weight, THRESHOLDS).astype(np.float64)
        return np.cumsum(held[::-1])[::-1]

    positive, negative = from_threshold_on(1), from_threshold_on(0)
    return Counts(positive, negative, negative[0] - negative, positive[0] - positive)


@dataclasses.dataclass(frozen=True)
class Bin:
    """Rows whose predictions are alike.

    Attributes:
      rows: How many.
      mean_prediction: Mean of their predictions.
      mean_label: Mean of their labels: of two classes the share of the second one.
    """

    rows: int
    mean_prediction: float
    mean_label: float


def calibration(rows: Rows) -> list[Bin]:
    """Returns bins of about as many rows each, by rising prediction.

    For two classes and for numbers.
    """
    order = np.argsort(rows.score, kind="stable")
    found = []
    for part in np.array_split(order, min(_BINS, max(len(order), 1))):
        if len(part):
            weight = rows.weight[part]
            found.append(
                Bin(
                    len(part),
                    _mean(rows.score[part], weight),
                    _mean(rows.truth[part], weight),
                )
            )
    return found


def confusion(rows: Rows) -> np.ndarray | None:
    """Returns the weight of rows by true (first axis) and predicted class.

    None where there are more than 50 classes.
    """
    classes = len(rows.label.classes or ())
    if not classes or classes > _MAX_CLASSES:
        return None
    place = (rows.truth * classes + rows.predicted).astype(int)
    found = np.bincount(place, rows.weight, classes * classes)
    return found.astype(np.float64).reshape(classes, classes)
