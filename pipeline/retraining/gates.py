"""What the data of a night must pass before anything is trained on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from pipeline.checks import anomalies
from pipeline.checks import run as checks
from pipeline.flags.checks import CheckFlags
from pipeline.preprocess import merge
from pipeline.preprocess.statistics import ColumnStatistics
from pipeline.retraining.days import Day
from pipeline.types import Declaration, ExitCode, UserError

Columns = Mapping[str, ColumnStatistics]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something about the data that a gate looks at.

    Attributes:
      gate: Which of `flags.retraining.GATES`.
      message: What, and of which day.
    """

    gate: str
    message: str


@dataclasses.dataclass(frozen=True)
class Earlier:
    """The data of the champion.

    Attributes:
      columns: Statistics of what it learned from.
      days: Number of days of that.
    """

    columns: Columns
    days: int


def earlier(dataset_dir: str, days: int) -> Earlier:
    """Reads the statistics of what a champion learned from."""
    return Earlier(merge.merge_statistics([dataset_dir])["train"], days)


def look(
    days: Sequence[Day],
    champion: Earlier | None,
    declaration: Declaration,
    schema_path: str | None,
    settings: CheckFlags,
) -> Iterator[Finding]:
    """Yields what is unusual about days that the champion has not seen.

    Each day is looked at by itself, since one day among ninety hardly moves them.

    Args:
      days: The new days.
      champion: What they are compared with; None compares with the schema only.
      declaration: Of the data.
      schema_path: Path of a schema, or None.
      settings: What is tolerated.
    """
    schema = checks.schema_of(declaration, schema_path)
    limits = checks.thresholds(declaration, schema, settings.drift_threshold)
    for day in days:
        columns = merge.merge_statistics([day.directory]).all_rows()
        for found in anomalies.against_schema(columns, schema):
            yield _finding("anomalies", day, found)
        if champion is None:
            continue
        drifts = list(anomalies.drifts(columns, champion.columns, limits))
        # Of a single day the number of rows is compared below.
        for found in anomalies.against_earlier(
            columns, champion.columns, drifts, float("inf")
        ):
            is_drift = found.kind in (
                anomalies.Kind.CATEGORY_DRIFT,
                anomalies.Kind.NUMBER_DRIFT,
            )
            yield _finding("drift" if is_drift else "anomalies", day, found)
        usual = anomalies.rows(champion.columns) / champion.days
        if not usual / settings.row_factor <= day.rows <= usual * settings.row_factor:
            yield Finding(
                "anomalies",
                f"{day.date}: {day.rows:,} rows, the champion's days have"
                f" {usual:,.0f} (factor {settings.row_factor:g})",
            )


def _finding(gate: str, day: Day, anomaly: anomalies.Anomaly) -> Finding:
    return Finding(gate, f"{day.date}: {anomaly.column or 'rows'} {anomaly.message}")


def too_few_rows(rows: int, least: int) -> Iterator[Finding]:
    """Yields a finding where there are too few rows to learn from."""
    if rows < least:
        yield Finding(
            "rows", f"{rows:,} rows to learn from, --min_train_rows={least:,}"
        )


def apply(findings: Sequence[Finding], actions: Mapping[str, str]) -> tuple[str, ...]:
    """Returns what is let pass with a warning.

    Args:
      findings: What the gates found.
      actions: Gate to "off", "warn" or "stop".

    Raises:
      UserError: Something is not let pass (BAD_DATA).
    """
    stopped = [f for f in findings if actions[f.gate] == "stop"]
    if stopped:
        first, more = stopped[0], len(stopped) - 1
        others = f" (and {more} more)" if more else ""
        raise UserError(
            f"gate {first.gate}: {first.message}{others}; correct the data, leave the"
            f" day out by --skip_days, or let it pass by --gates={first.gate}=warn",
            ExitCode.BAD_DATA,
        )
    return tuple(
        f"gate {f.gate}: {f.message}" for f in findings if actions[f.gate] == "warn"
    )
