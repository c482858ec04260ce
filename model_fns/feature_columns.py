"""The feature declaration as TensorFlow feature columns, for premade Estimators.

Feature columns name variables after what they read, so they are given inputs named
after the features: names of columns may hold any character, and two features of one
column would clash.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Mapping, Sequence

from model_fns import transforms
from pipeline.compat import tf
from pipeline.types import (
    Bucketized,
    Constants,
    Crossed,
    Declaration,
    Feature,
    Hashed,
    Identity,
    Numeric,
    UserError,
    Vocabulary,
)

WEIGHT = "row weight"
"""The input with the rows' weights; a feature's name holds no blank."""


def inputs(
    raw: Mapping[str, tf.Tensor], declaration: Declaration
) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Returns what the feature columns read, by feature name, and the weights.

    Args:
      raw: Column name to [batch]. The weights may be absent, as in serving.
    """
    made = {}
    for feature in declaration.features.values():
        if isinstance(feature, (Numeric, Bucketized)):
            made[feature.name] = raw[feature.column]
        elif isinstance(feature, (Vocabulary, Hashed)):
            made[feature.name] = _one_a_row(
                transforms.category_text(raw[feature.column])
            )
        elif isinstance(feature, Identity):
            made[feature.name] = _one_a_row(
                transforms.identity_ids(raw[feature.column], feature.buckets)
            )
    if declaration.weight in raw:
        made[WEIGHT] = raw[declaration.weight]
    return made


def _one_a_row(values: tf.Tensor) -> tf.SparseTensor:
    """Returns text or ids [batch] as sparse [batch, 1].

    Of a dense tensor feature columns drop the empty text (and the int -1), and in a
    cross they put dense parts after the sparse ones.
    """
    rows = tf.size(values, tf.int64)
    indices = tf.stack([tf.range(rows), tf.zeros([rows], tf.int64)], axis=1)
    return tf.SparseTensor(indices, values, tf.stack([rows, 1]))


class _Compiler:
    """Makes each feature's column once, so that crosses share them."""

    def __init__(self, declaration: Declaration, constants: Constants):
        self._features = declaration.features
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
                feature.name,
                normalizer_fn=functools.partial(
                    transforms.scaled,
                    scale=feature.scale,
                    scaling=self._constants.scalings[feature.name],
                ),
            )
        if isinstance(feature, Bucketized):
            return tf.feature_column.bucketized_column(
                tf.feature_column.numeric_column(feature.name),
                list(self._constants.boundaries[feature.name]),
            )
        if isinstance(feature, Vocabulary):
            return tf.feature_column.categorical_column_with_vocabulary_list(
                feature.name,
                list(self._constants.vocabularies[feature.name]),
                dtype=tf.string,
                num_oov_buckets=feature.oov_buckets,
            )
        if isinstance(feature, Hashed):
            return tf.feature_column.categorical_column_with_hash_bucket(
                feature.name, feature.buckets
            )
        if isinstance(feature, Identity):
            return tf.feature_column.categorical_column_with_identity(
                feature.name, feature.buckets + 1
            )
        return tf.feature_column.crossed_column(
            [self._cross_key(name) for name in feature.of], feature.buckets
        )

    def _cross_key(self, name: str):
        part = self._features[name]
        # TensorFlow crosses the text itself rather than its hash.
        return name if isinstance(part, Hashed) else self.column(part)

    def dense(self, feature: Feature):
        """Returns the column as a deep model takes it."""
        column = self.column(feature)
        if isinstance(feature, Numeric):
            return column
        if feature.embedding is None:
            return tf.feature_column.indicator_column(column)
        return tf.feature_column.embedding_column(column, feature.embedding)


def _check_names(features: Sequence[Feature], columns: Sequence, part: str) -> None:
    """Checks that the features of a part have different names as feature columns.

    The names of crosses and bucketized columns are TensorFlow's.
    """
    by_name = collections.defaultdict(list)
    for feature, column in zip(features, columns, strict=True):
        by_name[column.name].append(feature)
    for clashing in by_name.values():
        if len(clashing) == 1:
            continue
        names = ", ".join(f.name for f in clashing)
        if all(isinstance(f, Crossed) for f in clashing):
            problem = "cross the same features; keep one of them"
        else:
            problem = "get the same name in TensorFlow; rename one of them"
        raise UserError(f"features {names}, in the model's {part} part, {problem}")


def compile_columns(
    declaration: Declaration, constants: Constants
) -> tuple[list, list]:
    """Returns the feature columns of the wide and of the deep part.

    They read what `inputs` returns. Numeric features may be in both parts; a
    crossed or bucketized feature is wide unless it says `use`.

    Raises:
      UserError: TensorFlow cannot tell two features apart.
    """
    compiler = _Compiler(declaration, constants)
    features: Mapping[str, Feature] = declaration.features
    in_wide = [f for f in features.values() if f.use in ("wide", "both")]
    in_deep = [f for f in features.values() if f.use in ("deep", "both")]
    wide = [compiler.column(f) for f in in_wide]
    deep = [compiler.dense(f) for f in in_deep]
    _check_names(in_wide, wide, "wide")
    _check_names(in_deep, deep, "deep")
    return wide, deep
