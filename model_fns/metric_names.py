"""The metrics that `--metrics` can name. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pipeline.types import Declaration, Task, UserError

_YES_OR_NO = (Task.BINARY, Task.MULTI_LABEL)
_CLASSES = (*_YES_OR_NO, Task.MULTI_CLASS)
_NUMBERS = (Task.REGRESSION,)
TASKS: Mapping[str, tuple[Task, ...]] = {
    "accuracy": _CLASSES,
    "precision": _YES_OR_NO,
    "recall": _YES_OR_NO,
    "f1": _YES_OR_NO,
    "auc": _YES_OR_NO,
    "auc_pr": _YES_OR_NO,
    "log_loss": _CLASSES,
    "top": (Task.MULTI_CLASS,),
    "mse": _NUMBERS,
    "rmse": _NUMBERS,
    "mae": _NUMBERS,
    "mape": _NUMBERS,
}
"""Names, and the kinds of label that they suit."""
_WITH_THRESHOLD = ("accuracy", "precision", "recall", "f1")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric by name.

    Attributes:
      name: A key of TASKS, or package.module:function of the user's own.
      at: Of accuracy, precision, recall and f1: the probability from which a row
        counts as having the class, in (0, 1). Of "top": how many of the most likely
        classes are looked at.
    """

    name: str
    at: float | None = None

    def __str__(self) -> str:
        return self.name if self.at is None else f"{self.name}@{self.at:g}"

    @property
    def own(self) -> bool:
        return ":" in self.name


def _one(text: str) -> Metric:
    name, at, value = text.partition("@")
    if ":" in text:
        return Metric(text)
    if name not in TASKS:
        raise UserError(
            f"--metrics: {text!r} is unknown; there are {', '.join(TASKS)}, with a"
            " threshold as in precision@0.3, and package.module:function for one of"
            " your own"
        )
    if not at:
        return Metric(name, 5 if name == "top" else None)
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if name == "top" and number >= 1 and number == int(number):
        return Metric(name, int(number))
    if name not in _WITH_THRESHOLD or not 0 < number < 1:
        raise UserError(
            f"--metrics: {text!r} is not allowed; {', '.join(_WITH_THRESHOLD)} take a"
            " threshold between 0 and 1, as in precision@0.3, and top a whole number,"
            " as in top@3"
        )
    return Metric(name, number)


def parse(texts: Sequence[str]) -> tuple[Metric, ...]:
    """Reads names as `--metrics` has them, e.g. precision@0.3.

    Raises:
      UserError: One is unknown; the message lists what there is.
    """
    return tuple(_one(text.strip()) for text in texts if text.strip())


def check(metrics: Sequence[Metric], declaration: Declaration) -> None:
    """Checks that each metric suits a label, or one of several.

    Raises:
      UserError: Listing those that do.
    """
    tasks = {label.task for label in declaration.labels}
    for metric in metrics:
        if not metric.own and not tasks & {*TASKS[metric.name]}:
            fitting = [name for name, of in TASKS.items() if tasks & {*of}]
            raise UserError(
                f"--metrics: {metric} does not suit the label"
                f" ({', '.join(task.value for task in tasks)}); these do:"
                f" {', '.join(fitting)}"
            )
