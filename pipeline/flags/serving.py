"""Flags: Evaluation, export, verification and prediction."""

from __future__ import annotations

import dataclasses

from absl import flags

_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class ServingFlags:
    """Settings of evaluate, export and predict, as given.

    Attributes:
      eval_split: Split that evaluate and verify read.
      verify_rows: Rows on which the export is compared; 0 means all.
      keep_versions: Number of newest exported versions kept.
      output: File that predict writes.
      version: Exported version that predict uses; None means the newest.
    """

    eval_split: str
    verify_rows: int
    keep_versions: int
    output: str | None
    version: int | None


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_enum(
        "eval_split",
        "test",
        ("train", "eval", "test"),
        "Split that evaluate reports on and verify compares.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "verify_rows",
        1000,
        "Rows on which the exported model must agree with the Estimator to 1e-5; 0"
        " means every row of the split.",
        lower_bound=0,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "keep_versions",
        3,
        "Number of newest exported versions that are kept.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        None,
        "File that predict writes: one JSON object a row.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "version",
        None,
        "Exported version that predict uses; the newest by default.",
        lower_bound=1,
        upper_bound=2**63 - 1,
        flag_values=values,
    )


def read(values: flags.FlagValues) -> ServingFlags:
    return ServingFlags(
        eval_split=values.eval_split,
        verify_rows=values.verify_rows,
        keep_versions=values.keep_versions,
        output=values.output,
        version=values.version,
    )
