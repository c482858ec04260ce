"""Flags: How numbers are computed."""

from __future__ import annotations

from absl import flags

from pipeline.estimator_options import EstimatorOptions
from pipeline.flags import metrics


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_boolean(
        "mixed_precision",
        False,
        "Compute Keras layers in bfloat16, with float32 weights, in training and"
        " evaluation; no effect on premade Estimators. Exports compute in float32.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "xla",
        False,
        "Let XLA compile parts of the graph, in training and evaluation.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> EstimatorOptions:
    return EstimatorOptions(
        metrics=metrics.read(values),
        mixed_precision=values.mixed_precision,
        xla=values.xla,
    )
