"""The rules by which a candidate becomes the champion, and what they say.

Nothing here reads data: evidence goes in, a verdict with every rule comes out.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping

from pipeline.flags.blessing import BlessingFlags
from pipeline.metric_order import MetricOrder
from pipeline.retraining import scores
from pipeline.retraining.bootstrap import Interval
from pipeline.types import Declaration, UserError


class Kind(enum.Enum):
    """What a verdict says."""

    BLESSED = "blessed"
    NOT_BLESSED = "not_blessed"
    TOO_FEW_ROWS = "too_few_rows"


@dataclasses.dataclass(frozen=True)
class Slice:
    """The rows with one value of a column.

    Attributes:
      column: The column.
      value: The value.
      rows: How many these are.
      difference: Advantage of the candidate there; NaN where it cannot be told.
    """

    column: str
    value: str
    rows: int
    difference: float


@dataclasses.dataclass(frozen=True)
class Serving:
    """What the check of the exported model found.

    Attributes:
      rows: Rows on which the export was compared with the Estimator.
      largest_difference: Of any output there.
    """

    rows: int
    largest_difference: float


@dataclasses.dataclass(frozen=True)
class Evidence:
    """All that a verdict depends on besides the flags.

    Attributes:
      rows: Rows on which both were judged.
      order: The metric that decides, and its direction.
      candidate: Metrics of the candidate.
      champion: Those of the champion; None where there is none yet.
      baseline: Those of the best constant prediction.
      interval: Advantage of the candidate in the metric that decides; None without a
        champion.
      slices: Rows by value of a column; empty without a champion.
      not_finite: Rows for which the candidate predicts NaN or an infinity.
      spread: Largest less smallest prediction of the candidate.
      miscalibration: See `scores.miscalibration`.
      serving: Check of the exported model.
    """

    rows: int
    order: MetricOrder
    candidate: Mapping[str, float]
    champion: Mapping[str, float] | None
    baseline: Mapping[str, float]
    interval: Interval | None
    slices: tuple[Slice, ...]
    not_finite: int
    spread: float
    miscalibration: float
    serving: Serving


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule as it was applied.

    Attributes:
      name: Which rule.
      value: What was found.
      limit: What is allowed.
      passed: Whether it is.
      reason: Both in words.
    """

    name: str
    value: float | None
    limit: float | None
    passed: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was decided.

    Attributes:
      kind: What the rules say.
      rules: Every rule that was applied.
      forced: The reason for which the candidate is taken whatever they say.
    """

    kind: Kind
    rules: tuple[Rule, ...]
    forced: str | None

    @property
    def publishes(self) -> bool:
        return self.kind is Kind.BLESSED or self.forced is not None

    @property
    def reason(self) -> str:
        """One line for people."""
        failed = [rule.reason for rule in self.rules if not rule.passed]
        text = "; ".join(failed) or "every rule passed"
        return text if self.forced is None else f"forced ({self.forced}): {text}"


def check_flags(flags: BlessingFlags, declaration: Declaration) -> None:
    """Checks that the rules can be applied to what is predicted.

    Raises:
      UserError: They name metrics or columns that are not there.
    """
    if declaration.label is None:
        raise UserError("retrain needs a label in --features")
    known = scores.names(declaration.label.task)
    for name in (flags.metric, *(t.metric for t in flags.thresholds)):
        if name not in known:
            raise UserError(
                f"--bless_metric and --bless_thresholds: {name!r} is no metric of"
                f" {declaration.label.task.value}; there are {', '.join(known)}"
            )
    for name in flags.slices:
        if name not in declaration.columns:
            raise UserError(
                f"--bless_slices: no column {name} is declared; there are"
                f" {', '.join(declaration.columns)}"
            )
    if flags.force and flags.reason is None:
        raise UserError("--force_bless needs --reason=TEXT, which is recorded")


def decide(evidence: Evidence, flags: BlessingFlags) -> Verdict:
    """Applies every rule."""
    rules = tuple(_rules(evidence, flags))
    kind = Kind.BLESSED
    if not rules[0].passed:
        kind = Kind.TOO_FEW_ROWS
    elif not all(rule.passed for rule in rules):
        kind = Kind.NOT_BLESSED
    return Verdict(kind, rules, flags.reason if flags.force else None)


def _rules(evidence: Evidence, flags: BlessingFlags) -> Iterator[Rule]:
    yield Rule(
        "rows",
        evidence.rows,
        flags.min_test_rows,
        evidence.rows >= flags.min_test_rows,
        f"{evidence.rows:,} rows to judge by, {flags.min_test_rows:,} are needed",
    )
    yield from _sanity(evidence, flags)
    for threshold in flags.thresholds:
        value = evidence.candidate.get(threshold.metric, math.nan)
        yield Rule(
            f"threshold {threshold}",
            _plain(value),
            threshold.limit,
            threshold.holds(value),
            f"{threshold.metric} is {value:.6g}, wanted {threshold}",
        )
    if evidence.champion is None:
        yield _first(evidence)
    else:
        yield from _against_champion(evidence, flags)


def _sanity(evidence: Evidence, flags: BlessingFlags) -> Iterator[Rule]:
    yield Rule(
        "finite",
        evidence.not_finite,
        0,
        evidence.not_finite == 0,
        f"{evidence.not_finite:,} predictions are no finite number",
    )
    yield Rule(
        "not constant",
        _plain(evidence.spread),
        flags.min_spread,
        evidence.spread > flags.min_spread,
        f"predictions differ by {evidence.spread:.3g}, wanted more than"
        f" {flags.min_spread:g}",
    )
    yield Rule(
        "calibration",
        _plain(evidence.miscalibration),
        flags.max_miscalibration,
        evidence.miscalibration <= flags.max_miscalibration,
        f"the mean prediction is {evidence.miscalibration:.4g} from the mean label,"
        f" allowed is {flags.max_miscalibration:g}",
    )
    yield Rule(
        "serving",
        evidence.serving.largest_difference,
        None,
        True,
        f"the export agrees with the Estimator on {evidence.serving.rows:,} rows",
    )


def _first(evidence: Evidence) -> Rule:
    """The rule of a first run: better than to say the same of every row."""
    order = evidence.order
    value, limit = (order.value(m) for m in (evidence.candidate, evidence.baseline))
    return Rule(
        "first: better than a constant",
        _plain(value),
        _plain(limit),
        order.better(value, limit),
        f"there is no champion; {order.metric} is {value:.6g}, that of the best"
        f" constant prediction {limit:.6g}",
    )


def _against_champion(evidence: Evidence, flags: BlessingFlags) -> Iterator[Rule]:
    found, metric = evidence.interval, evidence.order.metric
    mine, theirs = evidence.candidate[metric], evidence.champion[metric]
    yield Rule(
        "change",
        _plain(found.difference),
        -flags.max_drop,
        found.difference >= -flags.max_drop,
        f"{metric} is {mine:.6g}, the champion's {theirs:.6g}; it may be worse by"
        f" {flags.max_drop:g}",
    )
    text = (
        f"with {flags.confidence:.0%} confidence the candidate is better by"
        f" {found.low:.6g} to {found.high:.6g}"
    )
    if flags.interval == "not_worse":
        reason = f"{text}; the upper end must not be below 0"
        yield Rule("interval", _plain(found.high), 0.0, found.high >= 0, reason)
    elif flags.interval == "better":
        reason = f"{text}; the lower end must be above 0"
        yield Rule("interval", _plain(found.low), 0.0, found.low > 0, reason)
    for part in evidence.slices:
        if part.rows < flags.slice_min_rows or math.isnan(part.difference):
            continue
        yield Rule(
            f"slice {part.column}={part.value}",
            part.difference,
            -flags.slice_max_drop,
            part.difference >= -flags.slice_max_drop,
            f"{metric} of {part.column}={part.value} ({part.rows:,} rows) changes by"
            f" {part.difference:+.6g} (above 0 is better); it may fall by"
            f" {flags.slice_max_drop:g}",
        )


def _plain(value: float) -> float | None:
    """JSON knows no NaN."""
    return float(value) if math.isfinite(value) else None
