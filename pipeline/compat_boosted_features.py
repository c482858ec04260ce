"""What boosted trees read: each feature column as columns of bucket numbers.

A feature is one column of int32 bucket numbers. A bucketized or categorical column is
one feature; an indicator column one for each of its values, with the buckets 0 and 1; a
numeric column one for each of its numbers, which quantiles of the first batches divide
into buckets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.python.feature_column import feature_column_v2 as columns_lib

from pipeline.compat import tf
from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class TreeFeature:
    """A feature.

    Attributes:
      column: The name of its column.
      buckets: The number of its buckets.
      is_category: Whether a node takes one bucket from the others; else it takes
        the buckets up to one.
    """

    column: str
    buckets: int
    is_category: bool


class Columns:
    """Feature columns as features.

    Args:
      feature_columns: Columns of tf.feature_column.
      quantiles: Buckets for each number of a numeric column.

    Attributes:
      features: The features.

    Raises:
      UserError: Trees cannot read one of them.
    """

    def __init__(self, feature_columns: Sequence[Any], quantiles: int):
        self._columns = sorted(feature_columns, key=lambda column: column.name)
        self._quantiles = quantiles
        for column in self._columns:
            _check(column)
        features = [
            TreeFeature(
                column.name,
                self._buckets(column),
                _is_category(column),
            )
            for column in self._columns
            for _ in range(_width(column))
        ]
        self._order = self._order_of(features)
        self.features = [features[i] for i in self._order]

    def _order_of(self, features: Sequence[TreeFeature]) -> list[int]:
        """The order in which TensorFlow tried features, by their numbers of buckets.

        Of two divisions that gain the same the first one is taken.
        """
        bucketized = {
            column.name: len(column.boundaries) + 1
            for column in self._columns
            if isinstance(column, columns_lib.BucketizedColumn)
        }
        groups: dict[int, list[int]] = {}
        for number, feature in enumerate(features):
            if feature.column not in bucketized:
                groups.setdefault(feature.buckets, []).append(number)
        last = groups.setdefault(max([2, *bucketized.values()]), [])
        last += [n for n, f in enumerate(features) if f.column in bucketized]
        return [number for group in groups.values() for number in group]

    @property
    def numbers(self) -> int:
        """How many features need quantiles."""
        return sum(_width(c) for c in self._columns if _is_numeric(c))

    def _buckets(self, column: Any) -> int:
        if _is_numeric(column):
            return self._quantiles
        if isinstance(column, columns_lib.BucketizedColumn):
            return len(column.boundaries) + 1
        if isinstance(column, columns_lib.IndicatorColumn):
            return 2
        return column.num_buckets

    def values(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what each column makes of a batch, by the column's name."""
        cache = columns_lib.FeatureTransformationCache(features)
        return {column.name: cache.get(column, None) for column in self._columns}

    def dense_numbers(self, values: Mapping[str, Any]) -> Any:
        """Returns the features that need quantiles: float32 [batch, numbers]."""
        found = [values[c.name] for c in self._columns if _is_numeric(c)]
        return tf.cast(tf.concat(found, axis=1), tf.float32)

    def bucket_numbers(self, values: Mapping[str, Any], boundaries: Any) -> Any:
        """Returns all features: int32 [batch, features].

        Args:
          values: What `values` returned.
          boundaries: Ascending, of each feature that needs quantiles: float32
            [numbers, quantiles - 1]; a number is in the bucket of the first boundary
            that is not below it. None where no feature needs any.
        """
        found: list[Any] = []
        taken = 0
        for column in self._columns:
            value = values[column.name]
            if _is_numeric(column):
                own = boundaries[taken : taken + _width(column)]
                numbers = tf.transpose(tf.cast(value, tf.float32))
                found.append(tf.transpose(tf.searchsorted(own, numbers, side="left")))
                taken += _width(column)
            else:
                if isinstance(value, tf.SparseTensor):
                    value = tf.sparse.to_dense(value)
                found.append(tf.cast(value, tf.int32))
        return tf.gather(tf.concat(found, axis=1), self._order, axis=1)


def _check(column: Any) -> None:
    if isinstance(column, columns_lib.BucketizedColumn):
        if column.source_column.shape != (1,):
            raise UserError(
                f"boosted trees: the bucketized column {column.name} has several"
                " numbers a row; make it several columns of one number each"
            )
    elif not isinstance(
        column,
        (
            columns_lib.CategoricalColumn,
            columns_lib.IndicatorColumn,
            columns_lib.NumericColumn,
        ),
    ):
        raise UserError(
            f"boosted trees cannot read the column {getattr(column, 'name', column)}:"
            " give them numeric, bucketized, categorical or indicator columns"
        )
    elif _is_numeric(column) and len(column.shape) != 1:
        raise UserError(
            f"boosted trees: the numeric column {column.name} has a shape of rank"
            f" {len(column.shape)}; 1 is allowed"
        )


def _is_category(column: Any) -> bool:
    # Those of buckets are both.
    return isinstance(column, columns_lib.CategoricalColumn) and not isinstance(
        column, columns_lib.BucketizedColumn
    )


def _is_numeric(column: Any) -> bool:
    return isinstance(column, columns_lib.NumericColumn)


def _width(column: Any) -> int:
    """The number of features that a column is."""
    if _is_numeric(column):
        return column.shape[0]
    if isinstance(column, columns_lib.IndicatorColumn):
        return column.categorical_column.num_buckets
    return 1


def quantiles(numbers: Any, buckets: int) -> Any:
    """Boundaries that divide each column evenly: float32 [columns, buckets - 1].

    A column of few different numbers has each of them as a boundary, once, and
    infinity for the rest.
    """

    def of_column(column: Any) -> Any:
        ordered = tf.sort(column)
        different = tf.unique(ordered).y
        many = tf.size(different) > buckets - 1
        count = tf.cast(tf.size(ordered), tf.float64)
        at = tf.range(1, buckets, dtype=tf.float64) * count / buckets
        even = tf.gather(ordered, tf.cast(tf.math.ceil(at), tf.int32) - 1)
        rest = tf.maximum(buckets - 1 - tf.size(different), 0)
        few = tf.concat([different, tf.fill([rest], np.float32(np.inf))], axis=0)
        return tf.cond(many, lambda: even, lambda: few[: buckets - 1])

    found = tf.map_fn(of_column, tf.transpose(numbers))
    return tf.ensure_shape(found, [numbers.shape[1], buckets - 1])
