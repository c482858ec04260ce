"""A feature column of several features with one table of learned vectors."""

from __future__ import annotations

import dataclasses

from pipeline.compat import tf

_DenseColumn = tf.__internal__.feature_column.DenseColumn
_WEIGHTS = "embedding_weights"


@dataclasses.dataclass(frozen=True)
class SharedEmbedding(_DenseColumn):
    """The vectors of all its categories side by side, from one table.

    `tf.feature_column.shared_embeddings` keeps its table outside the layer that reads
    it. Premade Estimators train the variables of their layers, so they would leave
    such a table as it was initialised (a test shows it).

    Attributes:
      group: Its name.
      columns: Categorical columns with equally many ids, weighted or not.
      combiners: Of each: sum, mean or sqrtn.
      dimension: Width of a vector.
    """

    group: str
    columns: tuple
    combiners: tuple[str, ...]
    dimension: int

    @property
    def name(self) -> str:
        return f"{self.group}_shared_embedding"

    @property
    def _is_v2_column(self) -> bool:
        return True

    @property
    def parents(self) -> list:
        return list(self.columns)

    @property
    def parse_example_spec(self) -> dict:
        return {
            name: kind
            for column in self.columns
            for name, kind in column.parse_example_spec.items()
        }

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([len(self.columns) * self.dimension])

    def transform_feature(self, transformation_cache, state_manager):
        return [transformation_cache.get(c, state_manager) for c in self.columns]

    def create_state(self, state_manager) -> None:
        """Makes the table, initialised as an embedding column's."""
        state_manager.create_variable(
            self,
            name=_WEIGHTS,
            shape=(self.columns[0].num_buckets, self.dimension),
            dtype=tf.float32,
            trainable=True,
            use_resource=True,
            initializer=tf.compat.v1.truncated_normal_initializer(
                mean=0.0, stddev=self.dimension**-0.5
            ),
        )

    def get_dense_tensor(self, transformation_cache, state_manager) -> tf.Tensor:
        table = state_manager.get_variable(self, name=_WEIGHTS)
        found = []
        for column, combiner in zip(self.columns, self.combiners, strict=True):
            given = column.get_sparse_tensors(transformation_cache, state_manager)
            found.append(
                tf.nn.safe_embedding_lookup_sparse(
                    table, given.id_tensor, given.weight_tensor, combiner
                )
            )
        return tf.concat(found, axis=1)

    def get_config(self) -> dict:
        raise NotImplementedError("a model's features come from its declaration")

    @classmethod
    def from_config(cls, config, custom_objects=None, columns_by_name=None):
        raise NotImplementedError("a model's features come from its declaration")
