"""Random rows that are valid for a declaration, as fast as memory gives them.

Training on them costs what the model costs alone: what training on real rows takes
longer is the input's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from input_fns import arrays, labels
from input_fns.options import TrainInput
from input_fns.order import InputFn
from pipeline.compat import tf
from pipeline.types import (
    Column,
    ColumnType,
    Constants,
    Declaration,
    Hashed,
    Identity,
    Vocabulary,
)

_BATCHES = 16
_STRINGS = 1000
_INTS = 1000


def _number_range(column: Column, low: float, high: float) -> tuple[float, float]:
    if column.min is not None:
        low = column.min
        high = max(high, low + 1) if column.max is None else column.max
    elif column.max is not None:
        high = column.max
        low = min(low, high - 1)
    return low, high


def _choices(column: Column, declaration: Declaration, constants: Constants):
    """Returns the values a column takes, or None where they are drawn from a range."""
    label = declaration.label
    if label is not None and label.column == column.name and label.classes:
        return label.classes
    if column.values is not None:
        return column.values
    for name, feature in declaration.features.items():
        if getattr(feature, "column", None) != column.name:
            continue
        if isinstance(feature, Vocabulary):
            return constants.vocabularies[name]
        if isinstance(feature, Identity):
            return range(feature.buckets)
        if isinstance(feature, Hashed) and column.type is ColumnType.STRING:
            return [f"value {number}" for number in range(feature.buckets)]
    return None


def _values(
    column: Column,
    declaration: Declaration,
    constants: Constants,
    rows: int,
    random: np.random.Generator,
) -> np.ndarray:
    choices = _choices(column, declaration, constants)
    if column.type is ColumnType.STRING:
        if choices is None:
            choices = [f"value {number}" for number in range(_STRINGS)]
        texts = [c if isinstance(c, bytes) else str(c).encode() for c in choices]
        return np.array(texts, object)[random.integers(len(texts), size=rows)]
    is_int = column.type is ColumnType.INT
    kind: Any = np.int64 if is_int else np.float32
    if isinstance(choices, range):
        return random.integers(choices.start, choices.stop, size=rows, dtype=kind)
    if choices is not None:
        plain = [kind(c.decode() if isinstance(c, bytes) else c) for c in choices]
        return np.array(plain, kind)[random.integers(len(plain), size=rows)]
    if is_int:
        low, high = _number_range(column, 0, _INTS)
        return random.integers(low, high, size=rows, dtype=kind, endpoint=True)
    low, high = _number_range(column, 0.0, 1.0)
    return random.uniform(low, high, size=rows).astype(kind)


def synthetic_rows(
    declaration: Declaration, constants: Constants, rows: int, seed: int
) -> arrays.Table:
    """Returns random rows; no value is missing.

    Args:
      declaration: The columns; their limits and lists of values are kept.
      constants: Its vocabularies give the values of their columns.
      rows: How many.
      seed: Of the values.
    """
    random = np.random.default_rng(seed)
    made = {
        column.name: _values(column, declaration, constants, rows, random)
        for column in labels.read_columns(declaration)
    }
    return arrays.from_arrays([rows], lambda columns: made)


def synthetic_input_fn(
    declaration: Declaration, constants: Constants, options: TrainInput
) -> InputFn:
    """Returns an endless input_fn of a few batches that were made beforehand.

    Returns:
      An input_fn as `order.train_input_fn` returns it.
    """

    def input_fn(input_context: Any | None = None) -> tf.data.Dataset:
        placed = options.placed(input_context)
        rows = placed.replica_rows * _BATCHES
        source = synthetic_rows(declaration, constants, rows, options.seed)
        columns = labels.read_columns(declaration)
        numbers = tf.data.Dataset.range(rows).batch(placed.replica_rows)
        batches = source.columns_of(numbers, columns, placed.reading)
        return batches.map(labels.labelled(declaration)).cache().repeat()

    return input_fn
