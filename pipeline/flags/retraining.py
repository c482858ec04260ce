"""Flags: The nightly window, and the gates that its data passes before training."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from absl import flags

from pipeline.flags import blessing, history, notices, publishing
from pipeline.flags.blessing import BlessingFlags
from pipeline.flags.history import HistoryFlags
from pipeline.flags.notices import NoticeFlags
from pipeline.flags.numbers import count
from pipeline.flags.publishing import PublishingFlags
from pipeline.types import UserError

GATES = ("schema", "anomalies", "drift", "rows")
ACTIONS = ("off", "warn", "stop")
_DEFAULT_GATES = {
    "schema": "stop",
    "anomalies": "stop",
    "drift": "warn",
    "rows": "stop",
}


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
      publishing: Where versions are published.
      keep_runs: Number of newest attempts whose directories are kept.
      lock_stale_secs: After so long without a heartbeat another host's lock is stale.
      notices: Whom to tell.
      history: Of rollback and status.
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
    publishing: PublishingFlags = PublishingFlags()
    keep_runs: int = 7
    lock_stale_secs: int = 300
    notices: NoticeFlags = NoticeFlags()
    history: HistoryFlags = HistoryFlags()


def define(values: flags.FlagValues) -> None:
    count(
        values,
        "window_days",
        90,
        "Days that a night looks at, the day of --run_date being the last.",
        3,
    )
    count(
        values,
        "eval_days",
        1,
        "Days, before the test days, that choose among a candidate's checkpoints.",
    )
    count(
        values,
        "test_days",
        7,
        "Last days of the window, from which nothing is learned: candidate and"
        " champion are judged on them.",
    )
    count(
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
    count(
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
    count(
        values,
        "keep_runs",
        7,
        "Number of newest attempts whose datasets and models are kept; those of"
        " published versions are kept besides.",
    )
    count(
        values,
        "lock_stale_secs",
        300,
        "A lock of another host whose heartbeat is older is taken over. One of a dead"
        " process of this host is taken over at once.",
        10,
    )
    flags.register_validator(
        "gates", _are_gates, "must be GATE=ACTION,...", flag_values=values
    )


def _are_gates(texts: list[str]) -> bool:
    pairs = [text.strip().split("=") for text in texts]
    return all(len(p) == 2 and p[0] in GATES and p[1] in ACTIONS for p in pairs)


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
        blessing=blessing.read(values),
        publishing=publishing.read(values),
        keep_runs=values.keep_runs,
        lock_stale_secs=values.lock_stale_secs,
        notices=notices.read(values),
        history=history.read(values),
    )
