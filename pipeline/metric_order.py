"""Which of two values of a metric is the better one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from pipeline.types import UserError

MODES = ("min", "max")
_SMALLER_IS_BETTER = ("loss", "error", "rmse", "mae", "mse")
_LARGER_IS_BETTER = ("accuracy", "auc", "precision", "recall", "f1")


@dataclasses.dataclass(frozen=True)
class MetricOrder:
    """A metric of the eval split and its direction.

    Attributes:
      metric: Its name, as `Estimator.evaluate` gives it.
      mode: "min" where smaller values are better, else "max".
    """

    metric: str
    mode: str

    def value(self, metrics: Mapping[str, float]) -> float:
        """Returns the metric among those of an evaluation.

        Raises:
          UserError: It is not there.
        """
        if self.metric not in metrics:
            there = ", ".join(sorted(set(metrics) - {"global_step"}))
            raise UserError(
                f"there is no metric {self.metric!r} to compare evaluations by; this"
                f" model has {there}"
            )
        return metrics[self.metric]

    def better(self, new: float, old: float, by: float = 0.0) -> bool:
        """Returns whether `new` is better than `old` by more than `by`; NaN never is."""
        if math.isnan(new) or math.isnan(old):
            return math.isnan(old) and not math.isnan(new)
        return new < old - by if self.mode == "min" else new > old + by


def order(metric: str, mode: str | None, flag: str) -> MetricOrder:
    """Returns the order of a metric; without a mode its name decides.

    Args:
      metric: Name of the metric.
      mode: "min", "max" or None.
      flag: The flag that takes a mode, for the message.

    Raises:
      UserError: The name does not tell.
    """
    if mode is not None:
        return MetricOrder(metric, mode)
    words = metric.lower().replace("/", "_").split("_")
    if any(word in words for word in _SMALLER_IS_BETTER):
        return MetricOrder(metric, "min")
    if any(word in words for word in _LARGER_IS_BETTER):
        return MetricOrder(metric, "max")
    raise UserError(
        f"--{flag}=min or --{flag}=max is needed: the name {metric!r} does not say"
        " whether smaller or larger values are better"
    )
