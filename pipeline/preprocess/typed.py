"""Raw values, text or typed, to checked values of the declared types."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import column_rules, splits, typed_values
from pipeline.preprocess.number_text import Failures, parse, trim
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.sources.base import RawBatch
from pipeline.types import (
    AnyLabel,
    AnySplit,
    Column,
    ColumnType,
    Distribution,
    Label,
    Split,
    label_of,
)

_MAX_SHOWN = 60
_MAX_CLASSES_SHOWN = 10
_LABEL_OUTSIDE = {
    Distribution.LOGNORMAL: lambda numbers: numbers <= 0,
    Distribution.POISSON: lambda numbers: numbers < 0,
    Distribution.LOGISTIC: lambda numbers: (numbers < 0) | (numbers > 1),
}


@dataclasses.dataclass(frozen=True, eq=False)
class TypedBatch:
    """Checked rows of a file.

    Attributes:
      table: The declared columns in order: int64, float32 or binary; null means
        missing and occurs only in columns with a default.
      path: File.
      lines: int64, the physical line on which each row begins, or its number in a
        file without lines (both from 1).
    """

    table: pa.RecordBatch
    path: str
    lines: np.ndarray


def convert(
    raw: RawBatch,
    columns: Sequence[Column],
    label: AnyLabel | None = None,
    split: AnySplit | None = None,
) -> tuple[TypedBatch, tuple[Reject, ...]]:
    """Converts rows to the declared types.

    Args:
      raw: Rows with at least the declared columns.
      columns: The declared columns.
      label: The label or labels, among the columns. A row without one is rejected,
        even where the column has a default, unless rows may have none of its classes.
      split: How rows are divided. A row that belongs to no split is rejected.

    Returns:
      The good rows, and one reject for each other row, naming its first failing
      column in declared order. The rejects of `raw` itself are not repeated.
    """
    arrays = []
    failed: dict[int, tuple[str, str]] = {}
    for column in columns:
        array, failures = _convert_column(
            raw.table.column(column.name), column, label_of(label, column.name)
        )
        arrays.append(array)
        for row, reason in failures.items():
            failed.setdefault(row, (column.name, reason))
    table = pa.record_batch(arrays, [column.name for column in columns])
    if split is not None and not isinstance(split, Split):
        for row, reason in splits.failures(table, split).items():
            failed.setdefault(row, (split.column, reason))
    if not failed:
        return TypedBatch(table, raw.path, raw.lines), ()
    rejects = tuple(
        Reject(raw.path, int(raw.lines[row]), name, reason, raw.text(row))
        for row, (name, reason) in sorted(failed.items())
    )
    good = np.ones(len(raw.lines), bool)
    good[list(failed)] = False
    return TypedBatch(table.filter(pa.array(good)), raw.path, raw.lines[good]), rejects


def _convert_column(
    values: pa.Array, column: Column, label: Label | None
) -> tuple[pa.Array, Failures]:
    """Returns the typed values and, by row, the whole reason of each failure."""
    values = typed_values.plain(values)
    if column.type is ColumnType.STRING:
        values = typed_values.as_text(values)
    if pa.types.is_binary(values.type):
        array, texts, missing, failures = _from_text(values, column)
    else:
        array, missing, failures = typed_values.to_numbers(values, column)
        texts = None
    array, outside = column_rules.apply(array, column)
    failures = {
        row: f"column {column.name}: {_show(values, row)} {reason}"
        for row, reason in {**outside, **failures}.items()
    }
    if column.required or (label is not None and label.separator is None):
        for row in np.flatnonzero(missing.to_numpy(zero_copy_only=False)).tolist():
            failures[row] = (
                f"column {column.name} is required and has no value "
                f"(found {_show(values, row)})"
            )
    if label is not None and label.classes is not None:
        array, allowed = _match_classes(texts, array, column, label)
        for row in np.flatnonzero(~allowed).tolist():
            failures.setdefault(
                row,
                f"column {column.name}: {_show(values, row)} is not one of the "
                f"classes {_show_classes(label.classes)}",
            )
    if label is not None and label.distribution is not Distribution.NORMAL:
        outside = _LABEL_OUTSIDE[label.distribution](
            array.to_numpy(zero_copy_only=False)
        )
        for row in np.flatnonzero(outside).tolist():
            failures.setdefault(
                row,
                f"column {column.name}: {_show(values, row)} is no label of the"
                f" distribution {label.distribution.value}",
            )
    return array, failures


def _from_text(
    values: pa.BinaryArray, column: Column
) -> tuple[pa.Array, pa.StringArray, pa.BooleanArray, Failures]:
    """Returns typed values, trimmed texts, what is missing, and failures by row."""
    texts = trim(values)
    missing = is_missing(texts, column.missing)
    present = pc.if_else(missing, None, texts)
    if column.type is ColumnType.STRING:
        return pc.if_else(missing, None, values), present, missing, {}
    array, failures = parse(present, column.type)
    return array, present, missing, failures


def is_missing(texts: pa.StringArray, markers: Sequence[str]) -> pa.BooleanArray:
    """Whether each trimmed text is empty or one of the markers."""
    encoded = [marker.encode().strip() for marker in {"", *markers}]
    return pc.is_in(texts.view(pa.binary()), value_set=pa.array(encoded, pa.binary()))


def _match_classes(
    texts: pa.StringArray | None,
    array: pa.Array,
    column: Column,
    label: Label,
) -> tuple[pa.Array, np.ndarray]:
    """Returns the labels, strings trimmed, and whether each is of the classes."""
    classes = label.classes
    if label.separator is not None:
        return texts.view(pa.binary()), _all_known(texts, label)
    if column.type is ColumnType.STRING:
        array = compared = texts.view(pa.binary())
        allowed = pa.array([name.encode() for name in classes], pa.binary())
    elif column.type is ColumnType.INT:
        compared, allowed = pc.cast(array, pa.string()), pa.array(classes)
    else:
        compared, allowed = array, pa.array(map(float, classes), pa.float32())
    return array, pc.is_in(compared, value_set=allowed).to_numpy(zero_copy_only=False)


def _all_known(texts: pa.StringArray, label: Label) -> np.ndarray:
    """Returns, by row, whether all its labels are classes; it may have none."""
    parts = pc.split_pattern(texts, label.separator)
    names = trim(pc.list_flatten(parts).cast(pa.binary()))
    allowed = pa.array(["", *label.classes])
    bad = np.flatnonzero(~pc.is_in(names, value_set=allowed).to_numpy(False))
    known = np.ones(len(texts), bool)
    known[pc.list_parent_indices(parts).to_numpy()[bad]] = False
    return known


def _show(values: pa.Array, row: int) -> str:
    """A value as it stands in the file, fit for one line of an error."""
    value = values[row].as_py()
    if not isinstance(value, bytes):
        return "null" if value is None else str(value)
    text = value.decode(errors="backslashreplace")
    if len(text) > _MAX_SHOWN:
        return repr(text[:_MAX_SHOWN]) + "..."
    return repr(text)


def _show_classes(classes: Sequence[str]) -> str:
    shown = ", ".join(map(repr, classes[:_MAX_CLASSES_SHOWN]))
    return shown + ", ..." if len(classes) > _MAX_CLASSES_SHOWN else shown
