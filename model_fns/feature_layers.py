"""The feature declaration as tf.keras layers: raw columns to ids and numbers.

`FeatureEncoder` turns raw columns into what each feature is; `WideLogits`, `DeepVector`
and `FieldVectors` turn that into the inputs of linear models, networks and
factorisation machines. All of it computes in float32, whatever the global policy: in
bfloat16 raw numbers would lose all but three digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model_fns import transforms
from pipeline.compat import tf, tf_keras
from pipeline.types import (
    Bucketized,
    Constants,
    Declaration,
    Feature,
    Hashed,
    Identity,
    Numeric,
    Vocabulary,
)

Encoded = Mapping[str, "tf.Tensor"]
"""Feature name to int64 ids [batch], or, of a numeric feature, float32 [batch, 1]."""


class VocabularyIds(tf_keras.layers.Layer):
    """Looks strings up: the term's place, or a hashed id after the last term."""

    def __init__(self, terms: Sequence[bytes], oov_buckets: int, **kwargs):
        super().__init__(trainable=False, **kwargs)
        ids = tf.range(len(terms), dtype=tf.int64)
        self._table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(list(terms)), ids),
            oov_buckets,
        )

    def call(self, text: tf.Tensor) -> tf.Tensor:
        return self._table.lookup(text)


class FeatureEncoder(tf_keras.layers.Layer):
    """Turns raw columns into the ids and scaled numbers of all features.

    Call it with raw columns (name to [batch]); it returns `Encoded`.

    Attributes:
      features: The features by name, in declared order.
      sizes: Number of ids of each categorical feature.
    """

    def __init__(self, declaration: Declaration, constants: Constants, **kwargs):
        super().__init__(trainable=False, dtype="float32", **kwargs)
        self.features: Mapping[str, Feature] = declaration.features
        self._constants = constants
        self._lookups = {
            f.name: VocabularyIds(
                constants.vocabularies[f.name], f.oov_buckets, name=f"{f.name}_lookup"
            )
            for f in self.features.values()
            if isinstance(f, Vocabulary)
        }
        self.sizes: Mapping[str, int] = {
            f.name: self._size(f)
            for f in self.features.values()
            if not isinstance(f, Numeric)
        }

    def used(self, part: str) -> tuple[Feature, ...]:
        """Returns the features of a part: "wide" or "deep"."""
        return tuple(f for f in self.features.values() if f.use in (part, "both"))

    def _size(self, feature: Feature) -> int:
        if isinstance(feature, Vocabulary):
            terms = self._constants.vocabularies[feature.name]
            return len(terms) + feature.oov_buckets
        if isinstance(feature, Bucketized):
            return len(self._constants.boundaries[feature.name]) + 1
        if isinstance(feature, Identity):
            return feature.buckets + 1
        return feature.buckets

    def call(self, raw: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        encoded: dict[str, tf.Tensor] = {}
        for name, feature in self.features.items():
            if isinstance(feature, Numeric):
                encoded[name] = self._number(feature, raw)
            else:
                encoded[name] = self._ids(feature, raw, encoded)
        return encoded

    def _number(self, feature: Numeric, raw) -> tf.Tensor:
        scaling = self._constants.scalings[feature.name]
        value = transforms.scaled(raw[feature.column], feature.scale, scaling)
        return value[:, tf.newaxis]

    def _ids(self, feature: Feature, raw, encoded) -> tf.Tensor:
        if isinstance(feature, Bucketized):
            return transforms.bucket_ids(
                raw[feature.column], self._constants.boundaries[feature.name]
            )
        if isinstance(feature, Vocabulary):
            return self._lookups[feature.name](self._text(feature, raw))
        if isinstance(feature, Identity):
            return transforms.identity_ids(raw[feature.column], feature.buckets)
        if isinstance(feature, Hashed):
            return transforms.hashed_ids(self._text(feature, raw), feature.buckets)
        parts = [self._cross_part(name, raw, encoded) for name in feature.of]
        return transforms.crossed_ids(parts, feature.buckets)

    def _text(self, feature: Vocabulary | Hashed, raw) -> tf.Tensor:
        return transforms.category_text(raw[feature.column])

    def _cross_part(self, name: str, raw, encoded) -> tf.Tensor:
        part = self.features[name]
        # As in the crossed feature column: a hashed feature is crossed by its text.
        return self._text(part, raw) if isinstance(part, Hashed) else encoded[name]


class _Table(tf_keras.layers.Layer):
    """A learned vector for each id of a feature: [batch] to [batch, width]."""

    def __init__(self, ids: int, width: int, initializer, regularizer, name: str):
        super().__init__(name=name, dtype="float32")
        self._embedding = tf_keras.layers.Embedding(
            ids,
            width,
            dtype="float32",
            embeddings_initializer=initializer,
            embeddings_regularizer=regularizer,
            name="table",
        )

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        return self._embedding(ids)


def _narrow_normal(width: int, seed: int):
    """As the embedding feature column initialises its table."""
    return tf_keras.initializers.TruncatedNormal(stddev=width**-0.5, seed=seed)


def _numbers(encoded: Encoded, features: Sequence[Feature]) -> tf.Tensor:
    return tf.concat([encoded[f.name] for f in features], axis=1)


def _divided(features: Sequence[Feature]) -> tuple[list[Feature], list[Feature]]:
    """Returns the numeric and the categorical ones."""
    numeric = [f for f in features if isinstance(f, Numeric)]
    return numeric, [f for f in features if not isinstance(f, Numeric)]


class WideLogits(tf_keras.layers.Layer):
    """A linear model over the features of the wide part, with a bias.

    Call it with `Encoded`; it returns float32 [batch, outputs], which is the bias alone
    where no feature is wide.

    Args:
      outputs: Number of logits.
      regularizer: Of the weights, not of the bias.
    """

    def __init__(
        self, encoder: FeatureEncoder, outputs: int, regularizer=None, **kwargs
    ):
        super().__init__(dtype="float32", **kwargs)
        self._numeric, categories = _divided(encoder.used("wide"))
        self._tables = {
            f.name: _Table(encoder.sizes[f.name], outputs, "zeros", regularizer, f.name)
            for f in categories
        }
        self._dense = tf_keras.layers.Dense(
            outputs,
            kernel_initializer="zeros",
            kernel_regularizer=regularizer,
            use_bias=False,
            dtype="float32",
            name="numbers",
        )
        self._bias = self.add_weight("bias", [outputs], initializer="zeros")

    def call(self, encoded: Encoded) -> tf.Tensor:
        parts = [table(encoded[name]) for name, table in self._tables.items()]
        if self._numeric:
            parts.append(self._dense(_numbers(encoded, self._numeric)))
        rows = tf.shape(tf.nest.flatten(encoded)[0])[0]
        bias = tf.tile(self._bias[tf.newaxis, :], [rows, 1])
        return tf.add_n([bias, *parts])


class DeepVector(tf_keras.layers.Layer):
    """All features of the deep part side by side, as a network takes them.

    Categories are embedded where they declare a width, else one-hot. Call it with
    `Encoded`; it returns float32 [batch, width].

    Args:
      seed: For the embeddings.

    Attributes:
      empty: Whether no feature is deep; it must not be called then.
    """

    def __init__(self, encoder: FeatureEncoder, seed: int, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self._sizes = encoder.sizes
        self._numeric, self._categories = _divided(encoder.used("deep"))
        self.empty = not (self._numeric or self._categories)
        self._tables = {
            f.name: _Table(
                encoder.sizes[f.name],
                f.embedding,
                _narrow_normal(f.embedding, seed + i),
                None,
                f.name,
            )
            for i, f in enumerate(self._categories)
            if f.embedding is not None
        }

    def call(self, encoded: Encoded) -> tf.Tensor:
        parts = []
        for feature in self._categories:
            ids = encoded[feature.name]
            table = self._tables.get(feature.name)
            parts.append(
                tf.one_hot(ids, self._sizes[feature.name])
                if table is None
                else table(ids)
            )
        if self._numeric:
            parts.append(_numbers(encoded, self._numeric))
        return tf.concat(parts, axis=1)


class FieldVectors(tf_keras.layers.Layer):
    """Each deep feature as one vector of the same width, for factorisation machines.

    A category has a learned vector for each id, whatever width it declares; a number
    scales a learned vector. Call it with `Encoded`; it returns float32
    [batch, fields, width].

    Args:
      width: Width of every vector.
      seed: For their initial values.
      regularizer: Of the vectors.
    """

    def __init__(
        self, encoder: FeatureEncoder, width: int, seed: int, regularizer=None, **kwargs
    ):
        super().__init__(dtype="float32", **kwargs)
        self._numeric, categories = _divided(encoder.used("deep"))
        self._tables = {
            f.name: _Table(
                encoder.sizes[f.name],
                width,
                _narrow_normal(width, seed + i),
                regularizer,
                f.name,
            )
            for i, f in enumerate(categories)
        }
        self._number_vectors = {
            f.name: self.add_weight(
                f"{f.name}/vector",
                [1, width],
                initializer=_narrow_normal(width, seed + 1000 + i),
                regularizer=regularizer,
            )
            for i, f in enumerate(self._numeric)
        }

    def call(self, encoded: Encoded) -> tf.Tensor:
        fields = [table(encoded[name]) for name, table in self._tables.items()]
        fields += [
            encoded[name] * vector for name, vector in self._number_vectors.items()
        ]
        return tf.stack(fields, axis=1)
