"""Flags: The nightly window, its gates, blessing, publishing and notices."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Mapping

from absl import flags

from pipeline.types import UserError

GATES = ("schema", "anomalies", "drift", "rows")
ACTIONS = ("off", "warn", "stop")
INTERVALS = ("off", "not_worse", "better")
_MAX_COUNT = 2**31 - 1
_THRESHOLD = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(\S+)\s*")
_DEFAULT_GATES = {
    "schema": "stop",
    "anomalies": "stop",
    "drift": "warn",
    "rows": "stop",
}


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


@dataclasses.dataclass(frozen=True)
class RetrainingFlags:
    """Settings of retrain, status, rollback and lineage, as given.

    Attributes:
      window_days: Days of the window.
      eval_days: Days that choose among checkpoints.
      test_days: Last days, on which candidate and champion are judged.
      allow_missing_days: So many days may be missing.
      skip_days: Days that are left out on purpose.
      gates: Gate to one of ACTIONS.
      min_train_rows: Fewer rows to learn from are too few.
      start: "scratch" or "champion".
      blessing: Rules of the verdict.
      serving_dir: Where versions are published; None for the default place.
      keep_runs: Number of newest attempts whose directories are kept.
      lock_stale_secs: After so long without a heartbeat another host's lock is stale.
      webhook_command: A command that gets the outcome, or None.
      prometheus_file: A file of metrics, or None.
      to: Version to go back to, or None.
      last: Number of runs that status shows.
    """

    window_days: int = 90
    eval_days: int = 1
    test_days: int = 7
    allow_missing_days: int = 0
    skip_days: tuple[str, ...] = ()
    gates: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: dict(_DEFAULT_GATES)
    )
    min_train_rows: int = 1000
    start: str = "scratch"
    blessing: BlessingFlags = BlessingFlags()
    serving_dir: str | None = None
    keep_runs: int = 7
    lock_stale_secs: int = 300
    webhook_command: str | None = None
    prometheus_file: str | None = None
    to: int | None = None
    last: int = 10


def _count(values, name: str, default, text: str, lower: int = 1) -> None:
    flags.DEFINE_integer(
        name,
        default,
        text,
        lower_bound=lower,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )


def _number(values, name: str, default: float, text: str, **bounds) -> None:
    flags.DEFINE_float(name, default, text, flag_values=values, **bounds)
    flags.register_validator(
        name, math.isfinite, "must be a number", flag_values=values
    )


def define(values: flags.FlagValues) -> None:
    _count(
        values,
        "window_days",
        90,
        "Days that a night looks at, the day of --run_date being the last.",
        3,
    )
    _count(
        values,
        "eval_days",
        1,
        "Days, before the test days, that choose among a candidate's checkpoints.",
    )
    _count(
        values,
        "test_days",
        7,
        "Last days of the window, from which nothing is learned: candidate and"
        " champion are judged on them.",
    )
    _count(
        values,
        "allow_missing_days",
        0,
        "So many days of the window may be missing or empty; else such a day is an"
        " error.",
        0,
    )
    flags.DEFINE_list(
        "skip_days",
        [],
        "Days that are left out on purpose, as YYYY-MM-DD,...",
        flag_values=values,
    )
    flags.DEFINE_list(
        "gates",
        [],
        "What to do where data fails a gate before training: GATE=ACTION,..., gates"
        f" {', '.join(GATES)}, actions {', '.join(ACTIONS)}; by default"
        f" {','.join(f'{g}={a}' for g, a in _DEFAULT_GATES.items())}.",
        flag_values=values,
    )
    _count(
        values,
        "min_train_rows",
        1000,
        "Fewer rows to learn from fail the gate `rows`.",
    )
    flags.DEFINE_enum(
        "start_from",
        "scratch",
        ["scratch", "champion"],
        "Weights that a candidate begins with: new ones, or those of the champion,"
        " whose vocabularies may have grown since.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "serving_dir",
        None,
        "Where versions are published; by default WORK_DIR/serving/NAME. A server"
        " watches it.",
        flag_values=values,
    )
    _count(
        values,
        "keep_runs",
        7,
        "Number of newest attempts whose datasets and models are kept; those of"
        " published versions are kept besides.",
    )
    _count(
        values,
        "lock_stale_secs",
        300,
        "A lock of another host whose heartbeat is older is taken over. One of a dead"
        " process of this host is taken over at once.",
        10,
    )
    _define_blessing(values)
    _define_notices(values)


def _define_blessing(values: flags.FlagValues) -> None:
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
    _number(
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
    _number(
        values,
        "bless_confidence",
        0.95,
        "Confidence of that interval.",
        lower_bound=0.5,
        upper_bound=0.9999,
    )
    _count(values, "bless_samples", 500, "Drawings of the bootstrap.", 20)
    flags.DEFINE_list(
        "bless_slices",
        [],
        "Columns: for none of their values may the metric fall by more than"
        " --slice_max_drop.",
        flag_values=values,
    )
    _number(
        values,
        "slice_max_drop",
        0.05,
        "See --bless_slices.",
        lower_bound=0.0,
    )
    _count(
        values,
        "slice_min_rows",
        200,
        "Slices of fewer rows are not judged.",
    )
    _number(
        values,
        "bless_max_miscalibration",
        0.2,
        "How far the mean prediction may be from the mean label: shares of classes, or"
        " standard deviations of a number.",
        lower_bound=0.0,
    )
    _count(
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
    flags.DEFINE_string(
        "reason",
        None,
        "Why a candidate is forced, or why it is rolled back; it is recorded.",
        flag_values=values,
    )
    flags.register_validator(
        "gates", _are_gates, "must be GATE=ACTION,...", flag_values=values
    )
    flags.register_validator(
        "bless_thresholds",
        lambda texts: all(map(_is_threshold, texts)),
        "must be METRIC>=NUMBER or METRIC<=NUMBER,...",
        flag_values=values,
    )
    flags.register_multi_flags_validator(
        ["force_bless", "reason"],
        lambda given: not given["force_bless"] or bool((given["reason"] or "").strip()),
        "--force_bless needs --reason=TEXT",
        flag_values=values,
    )


def _define_notices(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "webhook_command",
        None,
        "Command that gets the outcome as JSON on its standard input, e.g. 'curl"
        " --data @- URL'. It is not run by a shell.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "prometheus_file",
        None,
        "File of metrics about the run in Prometheus' text format, for node_exporter's"
        " textfile collector.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "to",
        None,
        "Version that rollback goes back to; by default the champion before.",
        lower_bound=1,
        upper_bound=2**63 - 1,
        flag_values=values,
    )
    _count(values, "last", 10, "Number of last runs that status shows.")


def _are_gates(texts: list[str]) -> bool:
    pairs = [text.strip().split("=") for text in texts]
    return all(len(p) == 2 and p[0] in GATES and p[1] in ACTIONS for p in pairs)


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


def _days(texts: list[str]) -> tuple[str, ...]:
    for text in filter(None, texts):
        try:
            fine = datetime.date.fromisoformat(text.strip()).isoformat() == text.strip()
        except ValueError:
            fine = False
        if not fine:
            raise UserError(f"--skip_days: {text!r} is no date as YYYY-MM-DD")
    return tuple(text.strip() for text in texts if text)


def read(values: flags.FlagValues) -> RetrainingFlags:
    gates = dict(text.strip().split("=") for text in values.gates)
    return RetrainingFlags(
        window_days=values.window_days,
        eval_days=values.eval_days,
        test_days=values.test_days,
        allow_missing_days=values.allow_missing_days,
        skip_days=_days(values.skip_days),
        gates={**_DEFAULT_GATES, **gates},
        min_train_rows=values.min_train_rows,
        start=values.start_from,
        blessing=BlessingFlags(
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
        ),
        serving_dir=values.serving_dir,
        keep_runs=values.keep_runs,
        lock_stale_secs=values.lock_stale_secs,
        webhook_command=values.webhook_command,
        prometheus_file=values.prometheus_file,
        to=values.to,
        last=values.last,
    )
