"""What one column of the data is: its type, its missing values, its spread."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import dates, number_text
from pipeline.preprocess.typed import is_missing
from pipeline.types import Column, ColumnType

MARKERS = ("?", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "-")
"""Texts taken for "no value" where they occur; the empty field always is."""

_LABEL_TEXTS = ("None", "-")
"""Markers that a column of text labels may well mean, as in "+" and "-"."""

_DEFAULT_TEXT = "missing"
_SAMPLE = 1000
_DIGITS = r"^[+-]?[0-9]+$"


@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
    """A column as inferred, and what is known of its values.

    Attributes:
      column: The column; with a default if values are missing.
      present: Number of rows that have a value.
      distinct: Number of different values among them.
      texts: The different values of a string column, in no certain order.
      numbers: The values of a number column, one for each different text.
      median: Median of the present numbers (of two the lower); None for strings.
      seconds: The different times, in seconds since 1970, where all values of a
        string column are ISO 8601 dates or times; else None.
    """

    column: Column
    present: int
    distinct: int
    texts: pa.Array
    numbers: np.ndarray
    median: int | float | None
    seconds: np.ndarray | None = None

    @property
    def effective(self) -> int:
        """Number of different values once the default stands for missing ones."""
        is_text = self.column.type is ColumnType.STRING
        return self.distinct + (is_text and not self.column.required)


class ValueTable:
    """The different values of a column and how often each occurs.

    Args:
      longest: Values are told apart by so many first bytes, for a column of long
        texts would fill the memory; None takes them whole.
    """

    def __init__(self, longest: int | None = None):
        self._longest = longest
        self._parts: list[pa.StructArray] = []

    def add(self, values: pa.Array) -> None:
        if self._longest is not None:
            values = pc.binary_slice(values, 0, self._longest)
        self._parts.append(pc.value_counts(values))

    def result(self) -> tuple[pa.BinaryArray, np.ndarray]:
        """The values in order of first appearance, and their counts."""
        values = pa.concat_arrays([part.field("values") for part in self._parts])
        counts = np.concatenate([part.field("counts") for part in self._parts])
        encoded = values.dictionary_encode()
        # Weights are added as float64: exact, as counts stay far below 2**53.
        sums = np.bincount(encoded.indices.to_numpy(), weights=counts)
        return encoded.dictionary, sums.astype(np.int64)


def infer_column(name: str, table: ValueTable, *, is_label: bool) -> Facts:
    """Infers a column from all of its values.

    It is an int if all values but the missing ones are; else a float if all are
    numbers; else a string. Whole numbers beyond 64 bits are strings, for they are
    identifiers, which a float would merge. The default is the median for numbers,
    for strings the most frequent marker; a label has none.
    """
    values, counts = table.result()
    texts = number_text.trim(values)
    missing = is_missing(texts, MARKERS).to_numpy(zero_copy_only=False)
    kind = _infer_type(texts.filter(pa.array(~missing)))
    known = MARKERS
    if is_label and kind is ColumnType.STRING:
        known = tuple(marker for marker in MARKERS if marker not in _LABEL_TEXTS)
        missing = is_missing(texts, known).to_numpy(zero_copy_only=False)
    marker_counts = _count_texts(texts.filter(pa.array(missing)), counts[missing])
    markers = ("", *(marker for marker in known if marker in marker_counts))
    build = functools.partial(Column, name, kind, markers)

    counts = counts[~missing]
    present = int(counts.sum())
    if kind is ColumnType.STRING:
        default = max(markers, key=lambda m: (m != "", marker_counts.get(m, 0)))
        default = (default or _DEFAULT_TEXT) if marker_counts and not is_label else None
        values = (texts if is_label else values).filter(pa.array(~missing)).unique()
        return Facts(
            build(default),
            present,
            len(values),
            values,
            numbers=np.empty(0),
            median=None,
            seconds=_seconds(values.view(pa.binary())),
        )
    texts = texts.filter(pa.array(~missing))
    numbers = number_text.parse(texts, kind)[0].to_numpy()
    median = _lower_median(numbers, counts, texts, kind)
    default = median if marker_counts and not is_label else None
    distinct = len(np.unique(numbers))
    return Facts(build(default), present, distinct, texts[:0], numbers, median)


def _seconds(values: pa.BinaryArray) -> np.ndarray | None:
    for part in (values[:_SAMPLE], values):
        found = dates.seconds(part)
        if len(found) < len(part) or not len(part):
            return None
    return found


def _infer_type(texts: pa.StringArray) -> ColumnType:
    if not len(texts):
        return ColumnType.STRING
    if _all_parse(texts, ColumnType.INT):
        return ColumnType.INT
    if _all_parse(texts, ColumnType.FLOAT):
        digits = pc.match_substring_regex(texts.view(pa.binary()), _DIGITS)
        return ColumnType.STRING if pc.all(digits).as_py() else ColumnType.FLOAT
    return ColumnType.STRING


def _all_parse(texts: pa.StringArray, kind: ColumnType) -> bool:
    # Values that do not parse are slow; mostly there is one among the first.
    for part in (texts[:_SAMPLE], texts):
        if number_text.parse(part, kind)[1]:
            return False
    return True


def _count_texts(texts: pa.StringArray, counts: np.ndarray) -> dict[str, int]:
    """Rows by trimmed text; " NA" and "NA" are one."""
    result: dict[str, int] = {}
    for text, count in zip(texts.to_pylist(), counts.tolist(), strict=True):
        result[text] = result.get(text, 0) + count
    return result


def _lower_median(
    numbers: np.ndarray, counts: np.ndarray, texts: pa.StringArray, kind: ColumnType
) -> int | float:
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(counts[order])
    middle = int(order[np.searchsorted(below, (below[-1] + 1) // 2)])
    if kind is ColumnType.INT:
        return int(numbers[middle])
    # From the text: 0.1 as float32 would read 0.10000000149011612.
    return float(texts[middle].as_py())
