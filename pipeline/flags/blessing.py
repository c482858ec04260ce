"""Flags: By which rules a candidate becomes the champion."""

from __future__ import annotations

import dataclasses
import math
import re

from absl import flags

from pipeline.flags.numbers import count, number

INTERVALS = ("off", "not_worse", "better")
_THRESHOLD = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(\S+)\s*")


@dataclasses.dataclass(frozen=True)
class Threshold:
    """A bound of a metric.

    Attributes:
      metric: Its name.
      is_lower: Whether the value must not be below the limit, or else above.
      limit: The bound.
    """

    metric: str
    is_lower: bool
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value is within it; NaN never is."""
        return value >= self.limit if self.is_lower else value <= self.limit

    def __str__(self) -> str:
        return f"{self.metric}{'>=' if self.is_lower else '<='}{self.limit:g}"


@dataclasses.dataclass(frozen=True)
class BlessingFlags:
    """By which rules a candidate is blessed, as given.

    Attributes:
      metric: The metric that decides.
      thresholds: Bounds of the candidate's metrics.
      max_drop: By how much it may be worse than the champion.
      interval: One of INTERVALS.
      confidence: Of the interval, between 0 and 1.
      samples: Drawings of the bootstrap.
      slices: Columns by whose values the metric must not fall.
      slice_max_drop: By how much it may all the same.
      slice_min_rows: Smaller slices are not judged.
      max_miscalibration: Allowed distance of mean prediction and mean label.
      min_spread: Predictions must differ by more.
      min_test_rows: Fewer are too few to judge.
      force: Whether to publish whatever the rules say.
      reason: Why; needed to force, and to roll back if wanted.
      seed: Of the bootstrap.
    """

    metric: str = "average_loss"
    thresholds: tuple[Threshold, ...] = ()
    max_drop: float = 0.01
    interval: str = "not_worse"
    confidence: float = 0.95
    samples: int = 500
    slices: tuple[str, ...] = ()
    slice_max_drop: float = 0.05
    slice_min_rows: int = 200
    max_miscalibration: float = 0.2
    min_spread: float = 1e-6
    min_test_rows: int = 1000
    force: bool = False
    reason: str | None = None
    seed: int = 1


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "bless_metric",
        "average_loss",
        "Metric of the test days that decides: average_loss, accuracy or auc of"
        " classes, average_loss, rmse or mae of numbers.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "bless_thresholds",
        [],
        "Bounds of the candidate's metrics, e.g. auc>=0.6,average_loss<=0.7.",
        flag_values=values,
    )
    number(
        values,
        "bless_max_drop",
        0.01,
        "By how much --bless_metric may be worse than the champion's.",
        lower_bound=0.0,
    )
    flags.DEFINE_enum(
        "bless_interval",
        "not_worse",
        INTERVALS,
        "What the bootstrap interval of the difference must show: that the candidate"
        " is not surely worse (upper end at least 0), or that it is surely better"
        " (lower end above 0).",
        flag_values=values,
    )
    number(
        values,
        "bless_confidence",
        0.95,
        "Confidence of that interval.",
        lower_bound=0.5,
        upper_bound=0.9999,
    )
    count(values, "bless_samples", 500, "Drawings of the bootstrap.", 20)
    flags.DEFINE_list(
        "bless_slices",
        [],
        "Columns: for none of their values may the metric fall by more than"
        " --slice_max_drop.",
        flag_values=values,
    )
    number(
        values,
        "slice_max_drop",
        0.05,
        "See --bless_slices.",
        lower_bound=0.0,
    )
    count(
        values,
        "slice_min_rows",
        200,
        "Slices of fewer rows are not judged.",
    )
    number(
        values,
        "bless_max_miscalibration",
        0.2,
        "How far the mean prediction may be from the mean label: shares of classes, or"
        " standard deviations of a number.",
        lower_bound=0.0,
    )
    count(
        values,
        "min_test_rows",
        1000,
        "With fewer rows on the test days the verdict is too_few_rows.",
    )
    flags.DEFINE_bool(
        "force_bless",
        False,
        "Publish the candidate whatever the rules say; needs --reason, which is"
        " recorded.",
        flag_values=values,
    )
    flags.register_validator(
        "bless_thresholds",
        lambda texts: all(map(_is_threshold, texts)),
        "must be METRIC>=NUMBER or METRIC<=NUMBER,...",
        flag_values=values,
    )


def _is_threshold(text: str) -> bool:
    try:
        _threshold(text)
    except ValueError:
        return False
    return True


def _threshold(text: str) -> Threshold:
    found = _THRESHOLD.fullmatch(text)
    if found is None or not math.isfinite(float(found[3])):
        raise ValueError(f"{text!r} is no threshold")
    return Threshold(found[1], found[2] == ">=", float(found[3]))


def read(values: flags.FlagValues) -> BlessingFlags:
    return BlessingFlags(
        metric=values.bless_metric,
        thresholds=tuple(map(_threshold, values.bless_thresholds)),
        max_drop=values.bless_max_drop,
        interval=values.bless_interval,
        confidence=values.bless_confidence,
        samples=values.bless_samples,
        slices=tuple(n.strip() for n in values.bless_slices if n.strip()),
        slice_max_drop=values.slice_max_drop,
        slice_min_rows=values.slice_min_rows,
        max_miscalibration=values.bless_max_miscalibration,
        min_test_rows=values.min_test_rows,
        force=values.force_bless,
        reason=(values.reason or "").strip() or None,
        seed=values.seed,
    )
