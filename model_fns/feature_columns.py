"""The feature declaration as TensorFlow feature columns, for premade Estimators.

Feature columns name variables after what they read, so they are given inputs named
after the features: names of columns may hold any character, and two features of one
column would clash.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Mapping, Sequence

from model_fns import categories, images, transforms
from model_fns.shared_column import SharedEmbedding
from pipeline.compat import tf
from pipeline.types import (
    Bucketized,
    Combiner,
    Constants,
    Crossed,
    Declaration,
    Feature,
    Hashed,
    Image,
    Text,
    TokenSequence,
    UserError,
    fixed_size,
    groups,
    is_looked_up,
    is_number,
)

WEIGHT = "row weight"
"""The input with the rows' weights; a feature's name holds no blank."""


def _weights_key(feature: Feature) -> str:
    """The input with the weights of a feature's values; no feature begins with a dot."""
    return f".{feature.name}.weights"


def inputs(
    raw: Mapping[str, tf.Tensor], declaration: Declaration
) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Returns what the feature columns read, by feature name, and the weights.

    Args:
      raw: Column name to [batch]. The weights may be absent, as in serving.
    """
    made = {}
    for feature in declaration.features.values():
        if isinstance(feature, Crossed):
            continue
        if isinstance(feature, Bucketized):
            made[feature.name] = raw[feature.column]
        elif is_number(feature):
            made[feature.name] = categories.number(feature, raw)
        elif isinstance(feature, Image):
            default = declaration.columns[feature.column].default
            made[feature.name] = images.decoded(raw[feature.column], feature, default)
        else:
            found = categories.values(feature, raw)
            made[feature.name] = transforms.to_sparse(found.values)
            if found.weights is not None:
                made[_weights_key(feature)] = transforms.to_sparse(found.weights)
    if declaration.weight in raw:
        made[WEIGHT] = raw[declaration.weight]
    return made


class _Compiler:
    """Makes each feature's column once, so that crosses share them."""

    def __init__(self, declaration: Declaration, constants: Constants):
        self._features = declaration.features
        self._constants = constants
        self._made: dict[str, object] = {}

    def column(self, feature: Feature):
        """Returns the dense or categorical column of a feature, without weights."""
        if feature.name not in self._made:
            self._made[feature.name] = self._make(feature)
        return self._made[feature.name]

    def _make(self, feature: Feature):
        if is_number(feature):
            return tf.feature_column.numeric_column(
                feature.name,
                normalizer_fn=functools.partial(
                    transforms.scaled_feature,
                    feature=feature,
                    scaling=self._constants.scalings[feature.name],
                ),
            )
        if isinstance(feature, Image):
            shape = (feature.height, feature.width, feature.channels)
            return tf.feature_column.numeric_column(feature.name, shape)
        if isinstance(feature, Bucketized):
            return tf.feature_column.bucketized_column(
                tf.feature_column.numeric_column(feature.name),
                list(self._constants.boundaries[feature.name]),
            )
        if isinstance(feature, Crossed):
            return tf.feature_column.crossed_column(
                [self._cross_key(name) for name in feature.of], feature.buckets
            )
        return self._category(feature, "categorical_column")

    def _category(self, feature: Feature, kind: str):
        """Returns a column of TensorFlow's `kind`: a sequence of values, or a bag."""
        name = feature.name
        if is_looked_up(feature):
            make = getattr(tf.feature_column, f"{kind}_with_vocabulary_list")
            return make(
                name,
                list(self._constants.vocabularies[name]),
                dtype=tf.string,
                num_oov_buckets=feature.oov_buckets,
            )
        if isinstance(feature, (Hashed, Text, TokenSequence)):
            make = getattr(tf.feature_column, f"{kind}_with_hash_bucket")
            return make(name, feature.buckets)
        make = getattr(tf.feature_column, f"{kind}_with_identity")
        return make(name, fixed_size(feature))

    def _cross_key(self, name: str):
        part = self._features[name]
        # TensorFlow crosses the text itself rather than its hash.
        return name if isinstance(part, Hashed) else self.column(part)

    def weighted(self, feature: Feature):
        """Returns the column of a feature with its weights, as a linear model takes it."""
        column = self.column(feature)
        if getattr(feature, "weights", None) is None:
            return column
        return tf.feature_column.weighted_categorical_column(
            column, _weights_key(feature)
        )

    def dense(self, feature: Feature):
        """Returns the column as a deep model takes it."""
        if is_number(feature) or isinstance(feature, Image):
            return self.column(feature)
        return _dense(self.weighted(feature), feature)

    def shared(self, group: str, members: Sequence[Feature]):
        """Returns the one column of features that share a table.

        In the order of their names, as layers for columns have them.
        """
        members = sorted(members, key=lambda feature: feature.name)
        return SharedEmbedding(
            group,
            tuple(self.weighted(f) for f in members),
            tuple(f.combiner.value for f in members),
            members[0].embedding,
        )

    def sequence(self, feature: TokenSequence):
        """Returns the column as a model for sequences takes it."""
        return _dense(self._category(feature, "sequence_categorical_column"), feature)


def _dense(column, feature: Feature):
    if feature.embedding is None:
        return tf.feature_column.indicator_column(column)
    combiner = getattr(feature, "combiner", Combiner.MEAN).value
    return tf.feature_column.embedding_column(column, feature.embedding, combiner)


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
    crossed or bucketized feature is wide unless it says `use`. Features that share a
    table are one column of the deep part.

    Raises:
      UserError: TensorFlow cannot tell two features apart.
    """
    compiler = _Compiler(declaration, constants)
    features: Mapping[str, Feature] = declaration.features
    sharing = groups(features)
    in_groups = {f.name for members in sharing.values() for f in members}
    in_wide = [f for f in features.values() if f.use in ("wide", "both")]
    in_deep = [
        f
        for f in features.values()
        if f.use in ("deep", "both") and f.name not in in_groups
    ]
    wide = [compiler.weighted(f) for f in in_wide]
    deep = [compiler.dense(f) for f in in_deep]
    _check_names(in_wide, wide, "wide")
    _check_names(in_deep, deep, "deep")
    return wide, deep + [compiler.shared(*group) for group in sharing.items()]


def sequence_columns(declaration: Declaration, constants: Constants) -> list:
    """Returns the columns of all features of kind `sequence`, for RNN models.

    `tf_keras.experimental.SequenceFeatures` takes them with `inputs`.
    """
    compiler = _Compiler(declaration, constants)
    return [
        compiler.sequence(feature)
        for feature in declaration.features.values()
        if isinstance(feature, TokenSequence)
    ]
