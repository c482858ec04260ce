"""The feature declaration as TensorFlow feature columns, for premade Estimators."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from model_fns import transforms
from pipeline.compat import tf
from pipeline.types import (
    Bucketized,
    Constants,
    Declaration,
    Feature,
    Hashed,
    Numeric,
    Vocabulary,
)


class _Compiler:
    """Makes each feature's column once, so that crosses share them."""

    def __init__(self, declaration: Declaration, constants: Constants):
        self._declaration = declaration
        self._constants = constants
        self._made: dict[str, object] = {}

    def column(self, feature: Feature):
        """Returns the numeric or categorical column of a feature."""
        if feature.name not in self._made:
            self._made[feature.name] = self._make(feature)
        return self._made[feature.name]

    def _make(self, feature: Feature):
        if isinstance(feature, Numeric):
            return tf.feature_column.numeric_column(
                feature.column,
                normalizer_fn=functools.partial(
                    transforms.scaled,
                    scale=feature.scale,
                    scaling=self._constants.scalings[feature.name],
                ),
            )
        if isinstance(feature, Bucketized):
            return tf.feature_column.bucketized_column(
                tf.feature_column.numeric_column(feature.column),
                list(self._constants.boundaries[feature.name]),
            )
        if isinstance(feature, Vocabulary):
            return tf.feature_column.categorical_column_with_vocabulary_list(
                self._category_key(feature.column),
                list(self._constants.vocabularies[feature.name]),
                dtype=tf.string,
                num_oov_buckets=feature.oov_buckets,
            )
        if isinstance(feature, Hashed):
            return tf.feature_column.categorical_column_with_hash_bucket(
                self._category_key(feature.column), feature.buckets
            )
        return tf.feature_column.crossed_column(
            [self._cross_key(name) for name in feature.of], feature.buckets
        )

    def _category_key(self, column: str) -> str:
        return transforms.category_key(self._declaration.columns[column])

    def _cross_key(self, name: str):
        part = self._declaration.features[name]
        if isinstance(part, Hashed):
            # TensorFlow crosses the text itself rather than its hash.
            return self._category_key(part.column)
        return self.column(part)

    def dense(self, feature: Feature):
        """Returns the column as a deep model takes it."""
        column = self.column(feature)
        if isinstance(feature, Numeric):
            return column
        if feature.embedding is None:
            return tf.feature_column.indicator_column(column)
        return tf.feature_column.embedding_column(column, feature.embedding)


def compile_columns(
    declaration: Declaration, constants: Constants
) -> tuple[list, list]:
    """Returns the feature columns of the wide and of the deep part.

    They read what `transforms.with_category_text` returns. Numeric features may be
    in both parts; a crossed or bucketized feature is wide unless it says `use`.
    """
    compiler = _Compiler(declaration, constants)
    features: Mapping[str, Feature] = declaration.features
    wide = [compiler.column(f) for f in features.values() if f.use in ("wide", "both")]
    deep = [compiler.dense(f) for f in features.values() if f.use in ("deep", "both")]
    return wide, deep
