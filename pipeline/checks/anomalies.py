"""What is unusual about a dataset."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping

import numpy as np

from pipeline.checks import distances
from pipeline.preprocess import byte_text
from pipeline.preprocess.schema import FeatureSchema
from pipeline.preprocess.statistics import ColumnStatistics
from pipeline.types import ColumnType

_SHOWN = 5
Columns = Mapping[str, ColumnStatistics]


class Kind(enum.Enum):
    """Kinds of anomalies, named as TensorFlow Metadata names them."""

    MISSING_COLUMN = "SCHEMA_MISSING_COLUMN"
    NEW_COLUMN = "SCHEMA_NEW_COLUMN"
    TYPE = "UNEXPECTED_DATA_TYPE"
    PRESENCE = "FEATURE_TYPE_LOW_FRACTION_PRESENT"
    NEW_VALUES = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
    SMALL_INT = "INT_TYPE_SMALL_INT"
    BIG_INT = "INT_TYPE_BIG_INT"
    SMALL_FLOAT = "FLOAT_TYPE_SMALL_FLOAT"
    BIG_FLOAT = "FLOAT_TYPE_BIG_FLOAT"
    CATEGORY_DRIFT = "COMPARATOR_L_INFTY_HIGH"
    NUMBER_DRIFT = "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH"
    NO_VALUES = "COMPARATOR_TREATMENT_DATA_MISSING"
    FEWER_ROWS = "COMPARATOR_LOW_NUM_EXAMPLES"
    MORE_ROWS = "COMPARATOR_HIGH_NUM_EXAMPLES"


@dataclasses.dataclass(frozen=True)
class Anomaly:
    """Something over its limit.

    Attributes:
      column: Where; None for the dataset as a whole.
      kind: What kind of thing.
      message: What was found and what is allowed.
    """

    column: str | None
    kind: Kind
    message: str


@dataclasses.dataclass(frozen=True)
class Drift:
    """How far a column is from the earlier dataset's.

    Attributes:
      column: Its name.
      measure: "L-infinity" or "Jensen-Shannon".
      distance: From 0 (equal) to 1.
      threshold: What is still normal.
    """

    column: str
    measure: str
    distance: float
    threshold: float


def against_schema(
    columns: Columns, schema: Mapping[str, FeatureSchema]
) -> Iterator[Anomaly]:
    """Yields where a dataset's columns are not as a schema says."""
    for name, rules in schema.items():
        if name not in columns:
            yield Anomaly(name, Kind.MISSING_COLUMN, "the dataset has no such column")
            continue
        yield from _column_against_schema(name, columns[name], rules)
    for name in columns:
        if name not in schema:
            yield Anomaly(name, Kind.NEW_COLUMN, "the schema has no such column")


def _column_against_schema(
    name: str, column: ColumnStatistics, rules: FeatureSchema
) -> Iterator[Anomaly]:
    if rules.type not in (None, column.type):
        message = f"is {column.type.value}, the schema says {rules.type.value}"
        yield Anomaly(name, Kind.TYPE, message)
        return
    wanted = rules.min_fraction
    if wanted is not None and column.count:
        present = 1 - column.missing / column.count
        if present < wanted:
            yield Anomaly(
                name,
                Kind.PRESENCE,
                f"{present:.2%} of the rows have a value, the schema wants {wanted:.2%}",
            )
    if rules.values is not None and column.values is not None:
        yield from _new_values(name, column, rules.values)
    if column.points.total and (rules.min, rules.max) != (None, None):
        low, high = column.points.quantiles([0.0, 1.0]).tolist()
        # Compared in the column's own type, as preprocess does.
        low_bound, high_bound = (
            _as_type(bound, column.type) for bound in (rules.min, rules.max)
        )
        is_int = column.type is ColumnType.INT
        if low_bound is not None and low < low_bound:
            kind = Kind.SMALL_INT if is_int else Kind.SMALL_FLOAT
            message = f"its lowest value {low:g} is below the schema's {rules.min}"
            yield Anomaly(name, kind, message)
        if high_bound is not None and high > high_bound:
            kind = Kind.BIG_INT if is_int else Kind.BIG_FLOAT
            message = f"its highest value {high:g} is above the schema's {rules.max}"
            yield Anomaly(name, kind, message)


def _as_type(bound: int | float | None, kind: ColumnType) -> float | None:
    if bound is None:
        return None
    return float(np.float32(bound)) if kind is ColumnType.FLOAT else float(bound)


def _new_values(
    name: str, column: ColumnStatistics, allowed: tuple[str, ...]
) -> Iterator[Anomaly]:
    known = {value.encode() for value in allowed}
    new = [(v, n) for v, n in column.values.most_frequent() if v not in known]
    if not new:
        return
    shown = ", ".join(f"{byte_text.to_text(v)!r} ({n:,})" for v, n in new[:_SHOWN])
    more = f" and {len(new) - _SHOWN:,} more" if len(new) > _SHOWN else ""
    rows = sum(n for _, n in new)
    yield Anomaly(
        name,
        Kind.NEW_VALUES,
        f"{rows:,} rows have values outside the schema's domain: {shown}{more}",
    )


def drifts(
    columns: Columns, earlier: Columns, thresholds: Mapping[str, float]
) -> Iterator[Drift]:
    """Yields the distance of each column that has values in both datasets.

    Columns whose values are counted in both are compared by the L-infinity distance,
    other numbers by the Jensen-Shannon divergence.
    """
    for name, column in columns.items():
        old = earlier.get(name)
        if old is None or old.type is not column.type:
            continue
        if not (column.present and old.present):
            continue
        if column.values is not None and old.values is not None:
            measure = "L-infinity"
            counts = [dict(c.values.most_frequent()) for c in (column, old)]
            distance = distances.l_infinity(*counts)
        elif column.type is ColumnType.STRING:
            continue
        else:
            measure = "Jensen-Shannon"
            distance = distances.numbers(column.points, old.points)
        yield Drift(name, measure, distance, thresholds[name])


def against_earlier(
    columns: Columns, earlier: Columns, found: list[Drift], row_factor: float
) -> Iterator[Anomaly]:
    """Yields columns that came, went or drifted, and unusual numbers of rows."""
    for name in earlier:
        if name not in columns:
            message = "the earlier dataset has this column, this one has not"
            yield Anomaly(name, Kind.MISSING_COLUMN, message)
    for name, column in columns.items():
        if name not in earlier:
            message = "the earlier dataset has no such column"
            yield Anomaly(name, Kind.NEW_COLUMN, message)
        elif earlier[name].type is not column.type:
            message = f"is {column.type.value}, it was {earlier[name].type.value}"
            yield Anomaly(name, Kind.TYPE, message)
        elif earlier[name].present and not column.present:
            yield Anomaly(name, Kind.NO_VALUES, "has no values any more")
    for drift in found:
        if drift.distance > drift.threshold:
            categories = drift.measure == "L-infinity"
            yield Anomaly(
                drift.column,
                Kind.CATEGORY_DRIFT if categories else Kind.NUMBER_DRIFT,
                f"{drift.measure} distance {drift.distance:.4f} is above"
                f" {drift.threshold:g}",
            )
    yield from _row_change(rows(columns), rows(earlier), row_factor)


def _row_change(now: int, before: int, factor: float) -> Iterator[Anomaly]:
    if now > before * factor:
        kind = Kind.MORE_ROWS
    elif now * factor < before:
        kind = Kind.FEWER_ROWS
    else:
        return
    message = f"{now:,} rows, the earlier dataset has {before:,} (factor {factor:g})"
    yield Anomaly(None, kind, message)


def rows(columns: Columns) -> int:
    """Returns the number of rows."""
    return max((column.count for column in columns.values()), default=0)
