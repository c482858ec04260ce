"""A feature declaration guessed from the data, for a person to edit."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pipeline.declaration.split import DEFAULT_FRACTIONS
from pipeline.preprocess import typed_values
from pipeline.preprocess.infer_column import Facts, ValueTable, infer_column
from pipeline.preprocess.sources.base import WHOLE, RawBatch, Source
from pipeline.types import (
    Bucketized,
    ColumnType,
    Date,
    DatePart,
    Declaration,
    Feature,
    Hashed,
    Label,
    Numeric,
    Scale,
    Split,
    UserError,
    Vocabulary,
)

MAX_CLASSES = 100
"""An int label with more different values is a regression."""

_MAX_VOCABULARY = 50_000
_MAX_ONE_HOT = 20
_MAX_EMBEDDING = 32
_HASH_BUCKETS = 10_000
_HASH_EMBEDDING = 16
_QUANTILES = 10
_SKEW = 1000
_LONGEST = 256
# In fewer rows than this, all different values are no sign of an identifier.
_MIN_ROWS_FOR_ID = 50
_ID_SHARE = 0.95

_log = logging.getLogger(__name__)


def infer_declaration(
    sources: Sequence[Source], *, label: str | None, max_rows: int = 1_000_000
) -> Declaration:
    """Infers columns, label and features from the first rows of the files.

    Numbers become a numeric feature (on a log scale if very skewed) and one of ten
    buckets for wide models; strings a vocabulary, or hashed if there are too many;
    more than a few different dates their year, month, day, weekday and hour.
    Identifiers (ints all different, strings nearly so) and constant columns become
    no feature. Values beyond the first `max_rows` rows are not looked at; what does
    not fit the declaration there is rejected later.

    Args:
      sources: Files with the same column names. Columns of types that cannot be used,
        such as times and lists, are left out.
      label: The column to predict; None for none.
      max_rows: Number of rows to look at, over all files.

    Raises:
      UserError: A file cannot be read, the files differ in their column names or
        hold no rows, `label` is unknown or of no use, or there is no feature.
    """
    names = _common_header(sources)
    if label is not None and label not in names:
        raise UserError(
            f"--label={label}: there is no such column; the columns are "
            f"{', '.join(names)}"
        )
    tables = _scan(sources, names, label, max_rows)
    facts = {
        name: infer_column(name, tables.pop(name), is_label=name == label)
        for name in names
    }
    target = None if label is None else _infer_label(facts[label])
    features = _infer_features([f for name, f in facts.items() if name != label])
    if not features:
        raise UserError(
            f"no column of {sources[0].path} can serve as a feature: all are constant or "
            "identifiers; declare what to use with --features"
        )
    return Declaration(
        columns={name: fact.column for name, fact in facts.items()},
        features=features,
        split=Split(DEFAULT_FRACTIONS),
        label=target,
    )


def _common_header(sources: Sequence[Source]) -> tuple[str, ...]:
    """Returns the usable columns, which files with complete headers must all have."""
    if not sources:
        raise UserError("there is no file to infer the columns from")
    headers = {source.path: source.header() for source in sources}
    names = tuple(dict.fromkeys(n for h in headers.values() for n in h.names))
    for path, header in headers.items():
        absent = set(names) - set(header.names)
        if header.complete and absent:
            other = next(p for p, h in headers.items() if absent & set(h.names))
            differing = sorted(set(header.names) ^ set(headers[other].names))
            raise UserError(
                f"{path} and {other} differ in their columns: only one of them has "
                f"{', '.join(differing)}"
            )
    unusable = {
        name: kind
        for header in headers.values()
        for name, kind in header.types.items()
        if not typed_values.is_usable(kind)
    }
    for name, kind in unusable.items():
        _log.warning("column %s is left out: its type is %s", name, kind)
    return tuple(name for name in names if name not in unusable)


def _scan(
    sources: Sequence[Source], names: Sequence[str], label: str | None, max_rows: int
) -> dict[str, ValueTable]:
    """Counts the values of each column over the first rows."""
    tables = {name: ValueTable(None if name == label else _LONGEST) for name in names}
    rows = 0
    trouble = ""
    for batch in _batches(sources, names):
        if batch.rejects and not trouble:
            reject = batch.rejects[0]
            trouble = f"; line {reject.line} of {reject.path} {reject.reason}"
        table = batch.table.slice(0, max_rows - rows)
        rows += table.num_rows
        for name in names:
            tables[name].add(typed_values.as_text(table.column(name)))
        if rows >= max_rows:
            break
    if not rows:
        raise UserError(f"there are no rows to infer a declaration from{trouble}")
    return tables


def _batches(sources: Sequence[Source], names: Sequence[str]) -> Iterable[RawBatch]:
    for source in sources:
        yield from source.read(WHOLE, names)


def _infer_label(facts: Facts) -> Label:
    column, distinct = facts.column, facts.distinct
    flag = f"--label={column.name}"
    if distinct < 2:
        held = "no value" if not distinct else "the same value in all rows"
        raise UserError(f"{flag}: the column has {held}; there is nothing to learn")
    if column.type is ColumnType.STRING:
        if distinct > MAX_CLASSES:
            raise UserError(
                f"{flag}: the column has {distinct:,} different texts, more than the "
                f"{MAX_CLASSES} classes that are inferred; declare the classes in a "
                "file for --features, or choose another column"
            )
        return Label(column.name, tuple(sorted(_decode(flag, facts))))
    if column.type is ColumnType.INT and distinct <= MAX_CLASSES:
        classes = sorted(set(facts.numbers.tolist()))
        return Label(column.name, tuple(map(str, classes)))
    return Label(column.name)


def _decode(flag: str, facts: Facts) -> list[str]:
    try:
        return facts.texts.to_pylist()
    except UnicodeDecodeError as error:
        raise UserError(f"{flag}: a label is not UTF-8 text ({error})") from error


def _infer_features(columns: Sequence[Facts]) -> dict[str, Feature]:
    used = []
    for facts in columns:
        reason = _useless(facts)
        if reason:
            _log.info("column %s is %s: not a feature", facts.column.name, reason)
        else:
            used.append(facts)
    taken: dict[str, Facts] = {}
    for facts in used:
        taken[_free_name(facts.column.name, taken)] = facts
    features: dict[str, Feature] = {}
    for name, facts in taken.items():
        if _are_dates(facts):
            for part in _parts(facts.seconds):
                part_name = _free_name(f"{name}_{part.value}", {**taken, **features})
                use = "deep" if part.size is None else "both"
                features[part_name] = Date(part_name, facts.column.name, part, use=use)
            continue
        if facts.column.type is ColumnType.STRING:
            features[name] = _categorical(name, facts)
            continue
        scale = Scale.LOG if _is_skewed(facts) else Scale.ZSCORE
        features[name] = Numeric(name, facts.column.name, scale)
        bucket = _free_name(f"{name}_bucket", {**taken, **features})
        features[bucket] = Bucketized(bucket, facts.column.name, quantiles=_QUANTILES)
    return features


def _are_dates(facts: Facts) -> bool:
    """Whether it is a column of dates, of which parts say more than their ranks."""
    return facts.seconds is not None and facts.distinct > _MAX_ONE_HOT


_INFERRED_PARTS = (
    DatePart.YEAR,
    DatePart.MONTH,
    DatePart.DAY,
    DatePart.WEEKDAY,
    DatePart.HOUR,
)


def _parts(seconds: np.ndarray) -> list[DatePart]:
    """Returns the parts that differ; hours do if there are times of day."""
    times = seconds.astype("datetime64[s]")
    days = times.astype("datetime64[D]")
    found = {
        DatePart.YEAR: times.astype("datetime64[Y]"),
        DatePart.MONTH: times.astype("datetime64[M]"),
        DatePart.DAY: days,
        DatePart.WEEKDAY: days,
        DatePart.HOUR: (seconds - days.astype(np.int64) * 86_400) // 3600,
    }
    return [part for part in _INFERRED_PARTS if len(np.unique(found[part])) > 1]


def _useless(facts: Facts) -> str:
    """Why the column is no feature; empty if it is one."""
    if _are_dates(facts):
        return ""
    if facts.effective <= 1:
        return "constant"
    if facts.present < _MIN_ROWS_FOR_ID:
        return ""
    if facts.column.type is ColumnType.INT and facts.distinct == facts.present:
        return "an identifier (all values differ)"
    is_text = facts.column.type is ColumnType.STRING
    if is_text and facts.distinct > _ID_SHARE * facts.present:
        return "an identifier (nearly all values differ)"
    return ""


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """`name` in the letters a feature may have, numbered if it is taken."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_.-") or "column"
    number, free = 1, plain
    while free in taken:
        number += 1
        free = f"{plain}_{number}"
    return free


def _categorical(name: str, facts: Facts) -> Feature:
    count = facts.effective
    if count > _MAX_VOCABULARY:
        return Hashed(name, facts.column.name, _HASH_BUCKETS, _HASH_EMBEDDING)
    embedding = None
    if count > _MAX_ONE_HOT:
        embedding = min(_MAX_EMBEDDING, round(6 * count**0.25))
    return Vocabulary(name, facts.column.name, embedding=embedding)


def _is_skewed(facts: Facts) -> bool:
    numbers = facts.numbers
    return numbers.min() >= 0 and float(numbers.max()) > _SKEW * (facts.median + 1)
