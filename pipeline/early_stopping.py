"""When training stops early: a function of the evaluations so far.

The state is the file of evaluations, so it survives any restart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pipeline import metric_order
from pipeline.evaluations import Evaluation
from pipeline.flags.evaluation import EvaluationFlags
from pipeline.metric_order import MetricOrder


@dataclasses.dataclass(frozen=True)
class Rule:
    """Stop when a metric has not improved for long enough.

    Attributes:
      order: The metric.
      patience: Evaluations in a row without improvement; None where steps count.
      patience_steps: Steps without improvement; None where evaluations count.
      min_delta: A change that is no larger is no improvement.
    """

    order: MetricOrder
    patience: int | None
    patience_steps: int | None
    min_delta: float

    def reason(self, evaluations: Sequence[Evaluation]) -> str | None:
        """Returns why to stop after these evaluations, or None to go on.

        Raises:
          UserError: They lack the metric.
        """
        best = None
        best_step = waited = 0
        for evaluation in evaluations:
            value = self.order.value(evaluation.metrics)
            if best is None or self.order.better(value, best, self.min_delta):
                best, best_step, waited = value, evaluation.global_step, 0
            else:
                waited += 1
        if best is None:
            return None
        steps = evaluations[-1].global_step - best_step
        if self.patience_steps is not None:
            enough = steps >= self.patience_steps
        else:
            enough = waited >= self.patience
        if not enough:
            return None
        by = f" by more than {self.min_delta:g}" if self.min_delta else ""
        return (
            f"{self.order.metric} has not improved{by} on {best:.6g} of step"
            f" {best_step:,} in {waited} evaluations ({steps:,} steps)"
        )


def rule(settings: EvaluationFlags) -> Rule | None:
    """Returns the rule that the flags ask for, if any.

    Raises:
      UserError: The metric's direction is not known.
    """
    if settings.early_stopping_metric is None:
        return None
    steps = settings.early_stopping_patience_steps
    return Rule(
        metric_order.order(
            settings.early_stopping_metric,
            settings.early_stopping_mode,
            "early_stopping_mode",
        ),
        settings.early_stopping_patience if steps is None else None,
        steps,
        settings.early_stopping_min_delta,
    )
