"""tf.estimator's boosted trees, which TensorFlow 2.9 removed, with their old arguments.

All arguments mean what they did:

  feature_columns: Numeric, bucketized, categorical and indicator columns.
  n_batches_per_layer: After how many batches a layer of a tree grows; the batches of
    an epoch, for gradients of all rows.
  n_trees, max_depth: Training ends by itself after so many trees of so many layers.
  learning_rate: What a tree's leaves are multiplied by.
  l1_regularization, l2_regularization, tree_complexity: Penalties, per row.
  min_node_weight: The least sum of hessians of a node, per row.
  center_bias: Whether the first tree begins with the labels' mean.
  pruning_mode: "none", "pre" or "post"; the others need tree_complexity > 0.
  quantile_sketch_epsilon: Numeric columns get 1/epsilon buckets.
  train_in_memory: That input_fn gives all rows as one batch; n_batches_per_layer is 1.

They train in one process without a distribution strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_estimator.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator.canned import head as heads

from pipeline.compat import tf
from pipeline.compat_boosted_features import Columns
from pipeline.compat_boosted_model import TreeOptions, make_model_fn

_BATCH_MEAN = tf.compat.v1.losses.Reduction.SUM_OVER_BATCH_SIZE
_WEIGHTED_MEAN = tf.compat.v1.losses.Reduction.SUM_OVER_NONZERO_WEIGHTS


class BoostedTreesEstimator(estimator_lib.EstimatorV2):
    """Boosted trees under any head whose loss has second derivatives."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        n_batches_per_layer: int,
        head: Any,
        model_dir: str | None = None,
        # The head has the weights; TensorFlow weighted the quantiles as well.
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ):
        if center_bias and head.logits_dimension > 1:
            raise ValueError(
                f"center_bias needs one logit, the head has {head.logits_dimension}"
            )
        if train_in_memory and n_batches_per_layer != 1:
            raise ValueError(
                "train_in_memory needs n_batches_per_layer=1, which is"
                f" {n_batches_per_layer}"
            )
        options = TreeOptions(
            n_trees=n_trees,
            max_depth=max_depth,
            learning_rate=learning_rate,
            l1=l1_regularization,
            l2=l2_regularization,
            tree_complexity=tree_complexity,
            min_node_weight=min_node_weight,
            center_bias=center_bias,
            pruning_mode=pruning_mode,
            quantile_sketch_epsilon=quantile_sketch_epsilon,
        )
        columns = Columns(feature_columns, options.quantiles)
        model_fn = make_model_fn(head, columns, options, n_batches_per_layer)
        super().__init__(model_fn, model_dir, config)


class BoostedTreesClassifier(BoostedTreesEstimator):
    """Boosted trees for a label of two or more classes."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        n_batches_per_layer: int,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ):
        super().__init__(
            feature_columns,
            n_batches_per_layer,
            _class_head(n_classes, weight_column, label_vocabulary),
            model_dir,
            weight_column,
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            config,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
            train_in_memory,
        )


class BoostedTreesRegressor(BoostedTreesEstimator):
    """Boosted trees for one or more numbers."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        n_batches_per_layer: int,
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ):
        head = heads._regression_head(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=_BATCH_MEAN,
        )
        super().__init__(
            feature_columns,
            n_batches_per_layer,
            head,
            model_dir,
            weight_column,
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            config,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
            train_in_memory,
        )


def _class_head(
    n_classes: int, weight_column: Any, label_vocabulary: Sequence[str] | None
) -> Any:
    if n_classes == 2:
        return heads._binary_logistic_head_with_sigmoid_cross_entropy_loss(
            weight_column=weight_column,
            label_vocabulary=label_vocabulary,
            loss_reduction=_BATCH_MEAN,
        )

    def loss_fn(labels, logits):
        # The fused op's second derivatives are not of the full matrix.
        ones = tf.one_hot(tf.reshape(labels, [-1]), n_classes)
        losses = -tf.reduce_sum(ones * tf.nn.log_softmax(logits), axis=1)
        return tf.expand_dims(losses, 1)

    return heads._multi_class_head_with_softmax_cross_entropy_loss(
        n_classes=n_classes,
        loss_fn=loss_fn,
        loss_reduction=_WEIGHTED_MEAN,
        label_vocabulary=label_vocabulary,
        weight_column=weight_column,
    )
