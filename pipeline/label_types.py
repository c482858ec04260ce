"""What is predicted: kinds of label, one or several of them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class Task(enum.Enum):
    """What kind of label is predicted."""

    BINARY = "binary classification"
    MULTI_CLASS = "multi-class classification"
    MULTI_LABEL = "multi-label classification"
    REGRESSION = "regression"
    MULTI_TASK = "several labels"


class Distribution(enum.Enum):
    """How a number is distributed about its prediction; decides the loss.

    With z the model's output and y the label: NORMAL predicts z, loss (y - z)^2;
    LOGNORMAL predicts exp(z), the median, loss (log y - z)^2, y > 0; POISSON predicts
    exp(z), loss exp(z) - y z, y >= 0; LOGISTIC predicts sigmoid(z), loss the cross
    entropy of y and it, 0 <= y <= 1.
    """

    NORMAL = "normal"
    LOGNORMAL = "lognormal"
    POISSON = "poisson"
    LOGISTIC = "logistic"


@dataclasses.dataclass(frozen=True)
class Label:
    """A column to predict.

    Attributes:
      column: Name of a declared column.
      classes: The allowed labels in class order (class 0 first), as text; None
        for a regression on a numeric column.
      separator: Stands between the labels of a row that may have several or none of
        the classes; None where each row has exactly one.
      distribution: Of a regression.
    """

    column: str
    classes: tuple[str, ...] | None = None
    separator: str | None = None
    distribution: Distribution = Distribution.NORMAL

    def __post_init__(self):
        if self.classes is None:
            if self.separator is not None:
                raise ValueError("separator needs classes")
            return
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise ValueError("classes needs at least two different labels")
        if self.distribution is not Distribution.NORMAL:
            raise ValueError("distribution is for a regression, without classes")
        if self.separator is None:
            return
        if len(self.separator) != 1 or self.separator.isspace():
            raise ValueError("separator needs one character that is no blank")
        for name in self.classes:
            if self.separator in name or not name:
                raise ValueError(f"class {name!r} is empty or holds the separator")

    @property
    def task(self) -> Task:
        if self.classes is None:
            return Task.REGRESSION
        if self.separator is not None:
            return Task.MULTI_LABEL
        return Task.BINARY if len(self.classes) == 2 else Task.MULTI_CLASS


@dataclasses.dataclass(frozen=True)
class Labels:
    """Several labels that one model predicts.

    Attributes:
      of: The labels by name; a name is part of metrics and of outputs.
      weights: By name, the factor of the label's loss in the sum that is minimised.
    """

    of: Mapping[str, Label]
    weights: Mapping[str, float]

    def __post_init__(self):
        if len(self.of) < 2:
            raise ValueError("labels needs at least two; write a single one as `label`")
        columns = [label.column for label in self.of.values()]
        if len(set(columns)) != len(columns):
            raise ValueError("a column may be one label only")

    @property
    def task(self) -> Task:
        return Task.MULTI_TASK


AnyLabel = Label | Labels


def labels_of(label: AnyLabel | None) -> tuple[Label, ...]:
    """Returns all labels: none, one or several."""
    if label is None:
        return ()
    return tuple(label.of.values()) if isinstance(label, Labels) else (label,)


def label_of(label: AnyLabel | None, column: str) -> Label | None:
    """Returns the label that a column holds, if it holds one."""
    return next((one for one in labels_of(label) if one.column == column), None)
