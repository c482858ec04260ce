"""Flags: The search for hyper-parameters."""

from __future__ import annotations

import dataclasses

from absl import flags

METHODS = ("random", "grid", "optuna")
_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class TuneFlags:
    """Settings of tune, as given.

    Attributes:
      search: What is searched, see `tuning.space.parse`.
      method: One of METHODS.
      trials: How many trainings; a grid ends by itself.
      prune: Whether hopeless trials are ended early.
      directory: Where trials are kept; None means tune/ beside the model directory.
    """

    search: str = ""
    method: str = "random"
    trials: int = 20
    prune: bool = True
    directory: str | None = None


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "search",
        "",
        "What to search, e.g. 'learning_rate=0.0001..0.1:log; dropout=0..0.5;"
        " hidden_units=[64]|[128,64]; batch_size=256|512': of each hyper-parameter a"
        " range or values.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "search_method",
        "random",
        METHODS,
        "random; grid: all combinations of values; optuna: TPE of the Optuna library"
        " (extra tune).",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "trials",
        20,
        "How many trainings; a grid ends by itself.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_bool(
        "prune",
        True,
        "End a trial whose --best_metric is worse than the median of the earlier ones at"
        " the same step.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "tune_dir",
        None,
        "Where trials are kept; by default tune/ beside the model directory.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> TuneFlags:
    return TuneFlags(
        search=values.search,
        method=values.search_method,
        trials=values.trials,
        prune=values.prune,
        directory=values.tune_dir,
    )
