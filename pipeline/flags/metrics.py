"""Flags: Further metrics."""

from __future__ import annotations

from absl import flags

from model_fns import metric_names
from model_fns.metric_names import Metric


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_list(
        "metrics",
        [],
        "Metrics besides those of the model, e.g."
        " --metrics=precision@0.3,recall@0.5,auc_pr:"
        f" {', '.join(metric_names.TASKS)}, or package.module:function for one of your"
        " own (docs/custom_models.md).",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> tuple[Metric, ...]:
    """Returns the metrics.

    Raises:
      UserError: A name is unknown.
    """
    return metric_names.parse(values.metrics)
