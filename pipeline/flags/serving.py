"""Flags: Evaluation, export, verification and prediction."""

from __future__ import annotations

import dataclasses
import re

from absl import flags

_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class ServingFlags:
    """Settings of evaluate, export and predict, as given.

    Attributes:
      eval_split: Split that evaluate and verify read.
      verify_rows: Rows on which the export is compared; 0 means all.
      keep_versions: Number of newest exported versions kept.
      version: Exported version that predict uses; None means the newest.
      checkpoint: What evaluate and export read: "latest", "best" or a step.
      eval_only_once: Whether evaluate evaluates once; else it follows a training.
      eval_timeout_secs: How long evaluate waits for a new checkpoint of a training
        that it follows.
    """

    eval_split: str
    verify_rows: int
    keep_versions: int
    version: int | None
    checkpoint: str = "latest"
    eval_only_once: bool = True
    eval_timeout_secs: int = 3600


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
    flags.DEFINE_integer(
        "version",
        None,
        "Exported version that predict uses; the newest by default.",
        lower_bound=1,
        upper_bound=2**63 - 1,
        flag_values=values,
    )
    flags.DEFINE_string(
        "checkpoint",
        "latest",
        "Checkpoint that evaluate and export read: latest, best (see --best_metric) or"
        " a step.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "eval_only_once",
        True,
        "Whether evaluate evaluates one checkpoint; --noeval_only_once follows a"
        " training in another process and evaluates each new checkpoint until that"
        " training ends.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "eval_timeout_secs",
        3600,
        "Seconds that evaluate --noeval_only_once waits for a new checkpoint before it"
        " gives up (exit code 8).",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )

    flags.register_validator(
        "checkpoint",
        lambda text: re.fullmatch("latest|best|[0-9]{1,18}", text) is not None,
        "must be latest, best or a step",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> ServingFlags:
    return ServingFlags(
        eval_split=values.eval_split,
        verify_rows=values.verify_rows,
        keep_versions=values.keep_versions,
        version=values.version,
        checkpoint=values.checkpoint,
        eval_only_once=values.eval_only_once,
        eval_timeout_secs=values.eval_timeout_secs,
    )
