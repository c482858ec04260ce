"""The feature declaration as tf.keras layers: raw columns to ids and numbers.

`FeatureEncoder` turns raw columns into what each feature is; `WideLogits`, `DeepVector`
and `FieldVectors` turn that into the inputs of linear models, networks and
factorisation machines (`sequence_layers` has those of models for sequences). All of it
computes in float32, whatever the global policy: in bfloat16 raw numbers would lose all
but three digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model_fns import categories, images, tables, transforms
from model_fns.tables import Category, Table, Weighted
from pipeline.compat import tf, tf_keras
from pipeline.types import (
    Bucketized,
    Combiner,
    Constants,
    Crossed,
    Declaration,
    Feature,
    Hashed,
    Image,
    fixed_size,
    is_category,
    is_looked_up,
    is_number,
)

Encoded = Mapping[str, "tf.Tensor | Category"]
"""Feature name to what it is.

A category is int64 ids: [batch], or ragged [batch, None] where a row may have several,
or `Weighted`. A number is float32 [batch, 1], an image float32 [batch, height, width,
channels].
"""

ENCODED = "encoded features"
"""Graph collection of what the `FeatureEncoder` returned: the tensors, in declared order;
without ragged and weighted ids."""


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
        self._columns = declaration.columns
        self._constants = constants
        self._lookups = {
            f.name: VocabularyIds(
                constants.vocabularies[f.name], f.oov_buckets, name=f"{f.name}_lookup"
            )
            for f in self.features.values()
            if is_looked_up(f)
        }
        self.sizes: Mapping[str, int] = {
            f.name: self._size(f) for f in self.features.values() if is_category(f)
        }

    def used(self, part: str) -> tuple[Feature, ...]:
        """Returns the features of a part: "wide" or "deep"."""
        return tuple(f for f in self.features.values() if f.use in (part, "both"))

    def _size(self, feature: Feature) -> int:
        if is_looked_up(feature):
            terms = self._constants.vocabularies[feature.name]
            return len(terms) + feature.oov_buckets
        if isinstance(feature, Bucketized):
            return len(self._constants.boundaries[feature.name]) + 1
        return fixed_size(feature)

    def call(self, raw: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor | Category]:
        encoded: dict[str, tf.Tensor | Category] = {}
        texts: dict[str, transforms.Categories] = {}
        for name, feature in self.features.items():
            if is_number(feature):
                encoded[name] = self._number(feature, raw)
            elif isinstance(feature, Image):
                default = self._columns[feature.column].default
                encoded[name] = images.decoded(raw[feature.column], feature, default)
            elif isinstance(feature, Bucketized):
                boundaries = self._constants.boundaries[name]
                encoded[name] = transforms.bucket_ids(raw[feature.column], boundaries)
            elif isinstance(feature, Crossed):
                # As in the crossed feature column: a hashed feature is crossed by its
                # text.
                parts = [texts.get(part, encoded[part]) for part in feature.of]
                encoded[name] = transforms.crossed_ids(parts, feature.buckets)
            else:
                found = categories.values(feature, raw)
                if isinstance(feature, Hashed):
                    texts[name] = found.values
                ids = self._ids(feature, found.values)
                weighted = found.weights is not None
                encoded[name] = Weighted(ids, found.weights) if weighted else ids
        if not tf.executing_eagerly():
            for value in encoded.values():
                # A graph with anything else in a collection cannot be written down.
                if isinstance(value, tf.Tensor):
                    tf.compat.v1.add_to_collection(ENCODED, value)
        return encoded

    def _number(self, feature: Feature, raw) -> tf.Tensor:
        scaling = self._constants.scalings[feature.name]
        value = categories.number(feature, raw)
        value = transforms.scaled_feature(value, feature, scaling)
        return value[:, tf.newaxis]

    def _ids(
        self, feature: Feature, values: transforms.Categories
    ) -> transforms.Categories:
        if isinstance(values, tf.RaggedTensor):
            return values.with_flat_values(self._ids(feature, values.flat_values))
        if is_looked_up(feature):
            return self._lookups[feature.name](values)
        if values.dtype == tf.string:
            return transforms.hashed_ids(values, feature.buckets)
        return values


def _numbers(encoded: Encoded, features: Sequence[Feature]) -> tf.Tensor:
    return tf.concat([encoded[f.name] for f in features], axis=1)


def _pixels(encoded: Encoded, feature: Image) -> tf.Tensor:
    size = feature.height * feature.width * feature.channels
    return tf.reshape(encoded[feature.name], [-1, size])


def _divided(
    features: Sequence[Feature],
) -> tuple[list[Feature], list[Feature], list[Image]]:
    """Returns the numbers, the categories and the images."""
    return (
        [f for f in features if is_number(f)],
        [f for f in features if is_category(f)],
        [f for f in features if isinstance(f, Image)],
    )


class WideLogits(tf_keras.layers.Layer):
    """A linear model over the features of the wide part, with a bias.

    Call it with `Encoded`; it returns float32 [batch, outputs], which is the bias alone
    where no feature is wide. Of several values in a row the weights are added.

    Args:
      outputs: Number of logits.
      regularizer: Of the weights, not of the bias.
    """

    def __init__(
        self, encoder: FeatureEncoder, outputs: int, regularizer=None, **kwargs
    ):
        super().__init__(dtype="float32", **kwargs)
        self._numeric, categories_, _ = _divided(encoder.used("wide"))
        self._tables = {
            f.name: Table(encoder.sizes[f.name], outputs, "zeros", regularizer, f.name)
            for f in categories_
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
        parts = [
            table(encoded[name], Combiner.SUM) for name, table in self._tables.items()
        ]
        if self._numeric:
            parts.append(self._dense(_numbers(encoded, self._numeric)))
        bias = tf.tile(self._bias[tf.newaxis, :], [tables.rows(encoded), 1])
        return tf.add_n([bias, *parts])


class _DeepTables:
    """One table a feature, or a group of features that share theirs."""

    def __init__(self, encoder: FeatureEncoder, widths, seed: int, regularizer=None):
        self.by_name: dict[str, Table] = {}
        self._of: dict[str, str] = {}
        for i, (feature, width) in enumerate(widths):
            name = getattr(feature, "shared", None) or feature.name
            self._of[feature.name] = name
            if name not in self.by_name:
                size = encoder.sizes[feature.name]
                initializer = tables.narrow_normal(width, seed + i)
                self.by_name[name] = Table(size, width, initializer, regularizer, name)

    def __contains__(self, feature: str) -> bool:
        return feature in self._of

    def vectors(self, feature: Feature, encoded: Encoded) -> tf.Tensor:
        combiner = getattr(feature, "combiner", Combiner.MEAN)
        table = self.by_name[self._of[feature.name]]
        return table(encoded[feature.name], combiner)


class DeepVector(tf_keras.layers.Layer):
    """All features of the deep part side by side, as a network takes them.

    Categories are embedded where they declare a width, else one-hot (the counts or
    weights of each id where a row may have several). An image is its numbers. Call it
    with `Encoded`; it returns float32 [batch, width].

    Args:
      seed: For the embeddings.

    Attributes:
      empty: Whether no feature is deep; it must not be called then.
    """

    def __init__(self, encoder: FeatureEncoder, seed: int, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self._sizes = encoder.sizes
        self._numeric, self._categories, self._images = _divided(encoder.used("deep"))
        self.empty = not encoder.used("deep")
        self._embedded = _DeepTables(
            encoder,
            [(f, f.embedding) for f in self._categories if f.embedding is not None],
            seed,
        )
        self._tables = self._embedded.by_name

    def call(self, encoded: Encoded) -> tf.Tensor:
        parts = []
        for feature in self._categories:
            if feature.name in self._embedded:
                parts.append(self._embedded.vectors(feature, encoded))
            else:
                size = self._sizes[feature.name]
                parts.append(tables.counts(encoded[feature.name], size))
        if self._numeric:
            parts.append(_numbers(encoded, self._numeric))
        parts += [_pixels(encoded, image) for image in self._images]
        return tf.concat(parts, axis=1)


class FieldVectors(tf_keras.layers.Layer):
    """Each deep feature as one vector of the same width, for factorisation machines.

    A category has a learned vector for each id, whatever width it declares; a number
    scales a learned vector, and each number of an image one of its own. Call it with
    `Encoded`; it returns float32 [batch, fields, width].

    Args:
      width: Width of every vector.
      seed: For their initial values.
      regularizer: Of the vectors.
    """

    def __init__(
        self, encoder: FeatureEncoder, width: int, seed: int, regularizer=None, **kwargs
    ):
        super().__init__(dtype="float32", **kwargs)
        self._numeric, self._categories, self._images = _divided(encoder.used("deep"))
        self._embedded = _DeepTables(
            encoder, [(f, width) for f in self._categories], seed, regularizer
        )
        self._tables = self._embedded.by_name
        self._number_vectors = {
            f.name: self.add_weight(
                f"{f.name}/vector",
                [self._count(f), width],
                initializer=tables.narrow_normal(width, seed + 1000 + i),
                regularizer=regularizer,
            )
            for i, f in enumerate([*self._numeric, *self._images])
        }

    def _count(self, feature: Feature) -> int:
        if isinstance(feature, Image):
            return feature.height * feature.width * feature.channels
        return 1

    def call(self, encoded: Encoded) -> tf.Tensor:
        fields = [self._embedded.vectors(f, encoded) for f in self._categories]
        fields += [
            encoded[f.name] * self._number_vectors[f.name] for f in self._numeric
        ]
        fields += [
            tf.matmul(_pixels(encoded, image), self._number_vectors[image.name])
            for image in self._images
        ]
        return tf.stack(fields, axis=1)
