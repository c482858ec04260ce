"""Flags: What check compares and what it tolerates."""

from __future__ import annotations

import dataclasses
import math

from absl import flags


@dataclasses.dataclass(frozen=True)
class CheckFlags:
    """Settings of check, as given.

    Attributes:
      against: Directory of an earlier dataset; None compares with the schema only.
      drift_threshold: Distance above which a column has drifted, in [0, 1].
      row_factor: Change of the number of rows that is still normal, at least 1.
    """

    against: str | None
    drift_threshold: float
    row_factor: float


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "against",
        None,
        "Directory of an earlier dataset to compare with.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "drift_threshold",
        0.1,
        "Distance from the earlier dataset above which a column has drifted, 0 to 1,"
        " where its declaration has no `drift` of its own.",
        lower_bound=0.0,
        upper_bound=1.0,
        flag_values=values,
    )
    flags.DEFINE_float(
        "row_factor",
        2.0,
        "More than so many times as many rows as the earlier dataset, or as few, is"
        " an anomaly.",
        lower_bound=1.0,
        flag_values=values,
    )

    for name in ("drift_threshold", "row_factor"):
        flags.register_validator(
            name, math.isfinite, "must be a number", flag_values=values
        )


def read(values: flags.FlagValues) -> CheckFlags:
    return CheckFlags(
        against=values.against,
        drift_threshold=values.drift_threshold,
        row_factor=values.row_factor,
    )
