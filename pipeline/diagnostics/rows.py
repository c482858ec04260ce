"""The rows of an evaluation: what was to be predicted, and what was."""

from __future__ import annotations

import dataclasses

import numpy as np

from pipeline.types import Label, Labels, Task

TASKS = (Task.BINARY, Task.MULTI_CLASS, Task.REGRESSION)


def is_possible(label: Label | Labels | None) -> bool:
    """Whether there are diagnostics for models of a label: one, of one class a row."""
    return isinstance(label, Label) and label.task in TASKS


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Labels and predictions of rows, in the order of the data.

    Attributes:
      label: What is predicted; `is_possible`.
      truth: float64 [rows]: number of the class, or the number itself.
      predicted: float64 [rows]: number of the most probable class, or the number.
      score: float64 [rows]: of two classes the probability of the second one, of
        several that of the true one; of numbers the prediction.
      weight: float64 [rows]; 1 without a weight column.
    """

    label: Label
    truth: np.ndarray
    predicted: np.ndarray
    score: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.truth)

    def where(self, chosen: np.ndarray) -> Rows:
        """Returns some of the rows.

        Args:
          chosen: bool [rows].
        """
        return Rows(
            self.label,
            self.truth[chosen],
            self.predicted[chosen],
            self.score[chosen],
            self.weight[chosen],
        )
