"""Flags: Evaluation while training, and what follows from it."""

from __future__ import annotations

import dataclasses

from absl import flags

from pipeline.metric_order import MODES

EXPORTERS = ("best", "latest", "final")
_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class EvaluationFlags:
    """Settings of train about its evaluations, as given.

    Attributes:
      eval_steps: Steps between evaluations; None means at each --checkpoint_steps, or
        once an epoch.
      best_metric: Metric that decides which checkpoint is the best.
      best_mode: "min", "max" or None, which means that the metric's name tells.
      exporters: Which SavedModels are written while training, of EXPORTERS.
      keep_exports: Number of newest versions that each of them keeps.
      early_stopping_metric: Metric that must go on improving; None means never stop
        early.
      early_stopping_mode: As best_mode.
      early_stopping_patience: Evaluations without improvement after which to stop.
      early_stopping_patience_steps: Steps without improvement; takes the place of
        early_stopping_patience.
      early_stopping_min_delta: What counts as no improvement.
    """

    eval_steps: int | None = None
    best_metric: str = "loss"
    best_mode: str | None = None
    exporters: tuple[str, ...] = ()
    keep_exports: int = 3
    early_stopping_metric: str | None = None
    early_stopping_mode: str | None = None
    early_stopping_patience: int = 5
    early_stopping_patience_steps: int | None = None
    early_stopping_min_delta: float = 0.0


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "eval_steps",
        None,
        "Steps between evaluations on the whole eval split, at multiples of this"
        " number and at the end; by default at each --checkpoint_steps, or else once"
        " an epoch. Each evaluation has a checkpoint.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_string(
        "best_metric",
        "loss",
        "Metric of the eval split that decides which checkpoint is the best; that one"
        " is kept in model_dir/best.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "best_mode",
        None,
        MODES,
        "Whether smaller or larger values of --best_metric are better; needed where"
        " the metric's name does not tell.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "exporters",
        [],
        "SavedModels to write while training, below model_dir/export: best (each time"
        " --best_metric improves), latest (each evaluation), final (the end of"
        " training), e.g. --exporters=best,final; none by"
        " default.",
        flag_values=values,
    )
    flags.register_validator(
        "exporters",
        lambda names: set(names) <= {*EXPORTERS, "none"},
        f"takes {', '.join(EXPORTERS)} or none",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "keep_exports",
        3,
        "Number of newest versions that each exporter keeps.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_string(
        "early_stopping_metric",
        None,
        "Metric of the eval split that must go on improving; else training stops"
        " early. By default it never does.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "early_stopping_mode",
        None,
        MODES,
        "Whether smaller or larger values of --early_stopping_metric are better;"
        " needed where the metric's name does not tell.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "early_stopping_patience",
        5,
        "Evaluations in a row without improvement after which training stops early.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "early_stopping_patience_steps",
        None,
        "Steps without improvement after which training stops early; takes the place"
        " of --early_stopping_patience.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_float(
        "early_stopping_min_delta",
        0.0,
        "A change of the metric that is no larger counts as no improvement.",
        lower_bound=0.0,
        upper_bound=1e30,
        flag_values=values,
    )


def read(values: flags.FlagValues) -> EvaluationFlags:
    return EvaluationFlags(
        eval_steps=values.eval_steps,
        best_metric=values.best_metric,
        best_mode=values.best_mode,
        exporters=tuple(e for e in EXPORTERS if e in values.exporters),
        keep_exports=values.keep_exports,
        early_stopping_metric=values.early_stopping_metric or None,
        early_stopping_mode=values.early_stopping_mode,
        early_stopping_patience=values.early_stopping_patience,
        early_stopping_patience_steps=values.early_stopping_patience_steps,
        early_stopping_min_delta=values.early_stopping_min_delta,
    )
