"""The feature declaration as tf.keras layers, and layers that Estimators need."""

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


class CategoryIds(tf_keras.layers.Layer):
    """Turns raw columns into the ids of all categorical features.

    Call it with raw features (column name to [batch]); it returns feature name to
    int64 ids of shape [batch]. `sizes` has the number of ids of each feature.
    """

    def __init__(self, declaration: Declaration, constants: Constants, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self._declaration = declaration
        self._constants = constants
        self._categories = [
            f for f in declaration.features.values() if not isinstance(f, Numeric)
        ]
        self._lookups = {
            f.name: VocabularyIds(
                constants.vocabularies[f.name], f.oov_buckets, name=f"{f.name}_lookup"
            )
            for f in self._categories
            if isinstance(f, Vocabulary)
        }
        self.sizes: Mapping[str, int] = {
            f.name: self._size(f) for f in self._categories
        }

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
        ids: dict[str, tf.Tensor] = {}
        for feature in self._categories:
            ids[feature.name] = self._ids(feature, raw, ids)
        return ids

    def _ids(self, feature: Feature, raw, ids) -> tf.Tensor:
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
        parts = [self._cross_part(name, raw, ids) for name in feature.of]
        return transforms.crossed_ids(parts, feature.buckets)

    def _text(self, feature: Vocabulary | Hashed, raw) -> tf.Tensor:
        return transforms.category_text(raw[feature.column])

    def _cross_part(self, name: str, raw, ids) -> tf.Tensor:
        part = self._declaration.features[name]
        # As in the crossed feature column: a hashed feature is crossed by its text.
        return self._text(part, raw) if isinstance(part, Hashed) else ids[name]


class ScaledNumbers(tf_keras.layers.Layer):
    """Turns raw columns into scaled numbers: float32 [batch, number of features]."""

    def __init__(self, features: Sequence[Numeric], constants: Constants, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self._features = tuple(features)
        self._constants = constants

    def call(self, raw: Mapping[str, tf.Tensor]) -> tf.Tensor:
        columns = [
            transforms.scaled(raw[f.column], f.scale, self._constants.scalings[f.name])
            for f in self._features
        ]
        return tf.stack(columns, axis=1)


class StepDropout(tf_keras.layers.Layer):
    """Dropout whose mask is a function of the seed and the global step.

    Under an Estimator, training that was interrupted and goes on from a checkpoint
    then draws the masks which an uninterrupted run would have drawn; Keras' Dropout
    begins its random stream anew in every session. Outside of an Estimator, where
    there is no global step, it is ordinary dropout.

    Args:
      rate: Share of values set to 0 in training, in [0, 1).
      seed: With the step it decides the mask; give each layer another one.
    """

    def __init__(self, rate: float, seed: int, **kwargs):
        super().__init__(**kwargs)
        self._rate = rate
        self._seed = seed

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if not training or self._rate == 0:
            return inputs
        step = tf.compat.v1.train.get_global_step()
        if step is None:
            return tf.nn.dropout(inputs, self._rate, seed=self._seed)
        seed = tf.stack([tf.constant(self._seed, tf.int64), tf.cast(step, tf.int64)])
        return tf.nn.experimental.stateless_dropout(inputs, self._rate, seed=seed)
