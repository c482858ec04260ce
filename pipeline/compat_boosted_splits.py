"""How the nodes of boosted trees are divided: arithmetic on tensors, without state.

Gains and weights are those of second order boosting with a full matrix of second
derivatives for several logits (Chen and Guestrin 2016, "XGBoost", eq. 5 to 7;
Ponomareva et al. 2017, "TF Boosted Trees").

Nodes of a tree are numbered as in a heap: 0 is the root, 2n + 1 and 2n + 2 are the
left and the right child of n.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.compat import tf
from pipeline.compat_boosted_features import TreeFeature

# A matrix of second derivatives of a softmax has no inverse; this share of its mean
# diagonal is added to the diagonal.
_RIDGE = 1e-3
_TINY = 1e-15


@dataclasses.dataclass(frozen=True)
class Penalties:
    """What makes trees small; all are per row and >= 0.

    Attributes:
      l1: Of a leaf's weight; with one logit only.
      l2: Of the square of a leaf's weight.
      complexity: Of a leaf.
      min_node_weight: The least sum of second derivatives of a node.
    """

    l1: float
    l2: float
    complexity: float
    min_node_weight: float


@dataclasses.dataclass(frozen=True)
class Buckets:
    """All buckets of all features in one row, feature after feature."""

    features: Sequence[TreeFeature]

    @property
    def total(self) -> int:
        return sum(f.buckets for f in self.features)

    @property
    def starts(self) -> np.ndarray:
        """Where each feature's buckets begin: int32 [features]."""
        sizes = [f.buckets for f in self.features]
        return np.cumsum([0, *sizes[:-1]]).astype(np.int32)

    @property
    def feature_of(self) -> np.ndarray:
        """The feature of each bucket: int32 [total]."""
        sizes = [f.buckets for f in self.features]
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @property
    def number_of(self) -> np.ndarray:
        """The number of each bucket in its feature: int32 [total]."""
        return np.arange(self.total, dtype=np.int32) - self.starts[self.feature_of]

    @property
    def is_category(self) -> np.ndarray:
        """Whether each feature is one of categories: bool [features]."""
        return np.array([f.is_category for f in self.features])

    def sums(self, places: Any, numbers: Any, rows: Any, slots: int) -> Any:
        """Adds up rows by the node they are in and the bucket of each feature.

        Args:
          places: int32 [batch]; the node's place in its layer, -1 for none.
          numbers: int32 [batch, features]; bucket numbers.
          rows: float32 [batch, statistics].
          slots: How many places there are.

        Returns:
          float32 [slots, total, statistics].
        """
        width = rows.shape[1]
        ids = places[:, tf.newaxis] * self.total + self.starts + numbers
        # Ids below 0 are left out by the op.
        ids = tf.where(places[:, tf.newaxis] < 0, -tf.ones_like(ids), ids)
        each = tf.repeat(rows, len(self.features), axis=0)
        flat = tf.math.unsorted_segment_sum(
            each, tf.reshape(ids, [-1]), slots * self.total
        )
        return tf.reshape(flat, [slots, self.total, width])

    def left_sums(self, sums: Any) -> Any:
        """Sums of the rows that go left where a bucket divides a node."""
        running = tf.cumsum(sums, axis=1)
        before = tf.gather(
            tf.pad(running, [[0, 0], [1, 0], [0, 0]]), self.starts, axis=1
        )
        below = running - tf.gather(before, self.feature_of, axis=1)
        is_category = self.is_category[self.feature_of][np.newaxis, :, np.newaxis]
        return tf.where(is_category, sums, below)


@dataclasses.dataclass(frozen=True)
class Splits:
    """The best way to divide each node of a layer.

    Attributes:
      gains: float32 [slots]; minus infinity where a node cannot be divided.
      buckets: int32 [slots]; index of the bucket among all.
      left: float32 [slots, logits]; what the left child adds to its parent.
      right: The same for the right child.
    """

    gains: Any
    buckets: Any
    left: Any
    right: Any


def best_splits(
    sums: Any, buckets: Buckets, penalties: Penalties, logits: int
) -> Splits:
    """Finds the best division of each node.

    Args:
      sums: Means over rows of gradients and second derivatives: float32 [slots,
        total, logits + logits**2].
      buckets: The features' buckets.
      penalties: What makes trees small.
      logits: The number of logits.
    """
    first = buckets.features[0].buckets
    whole = tf.reduce_sum(sums[:, :first], axis=1, keepdims=True)
    left = buckets.left_sums(sums)
    right = whole - left
    left_weights, left_gains = weights_and_gains(left, penalties, logits)
    right_weights, right_gains = weights_and_gains(right, penalties, logits)
    _, whole_gains = weights_and_gains(whole, penalties, logits)
    gains = left_gains + right_gains - whole_gains - penalties.complexity
    least = penalties.min_node_weight
    possible = tf.logical_and(
        _sizes(left, logits) >= least, _sizes(right, logits) >= least
    )
    # A node without rows.
    possible = tf.logical_and(possible, _sizes(whole, logits) > 0.0)
    gains = tf.where(possible, gains, -np.inf * tf.ones_like(gains))
    best = tf.argmax(gains, axis=1, output_type=tf.int32)
    return Splits(
        gains=tf.gather(gains, best, axis=1, batch_dims=1),
        buckets=best,
        left=tf.gather(left_weights, best, axis=1, batch_dims=1),
        right=tf.gather(right_weights, best, axis=1, batch_dims=1),
    )


def weights_and_gains(sums: Any, penalties: Penalties, logits: int) -> tuple[Any, Any]:
    """Weights of leaves, float32 [..., logits], and what they gain, float32 [...]."""
    gradients, hessians = sums[..., :logits], sums[..., logits:]
    if logits == 1:
        shrunk = tf.sign(gradients) * tf.nn.relu(tf.abs(gradients) - penalties.l1)
        total = hessians + penalties.l2
        weights = tf.math.divide_no_nan(-shrunk, total)
        weights = tf.where(total > _TINY, weights, tf.zeros_like(weights))
        return weights, tf.squeeze(-shrunk * weights, -1)
    matrix = tf.reshape(hessians, [*_shape(hessians)[:-1], logits, logits])
    ridge = penalties.l2 + _RIDGE * tf.linalg.trace(matrix) / logits + _TINY
    matrix += ridge[..., tf.newaxis, tf.newaxis] * tf.eye(logits)
    weights = -tf.linalg.solve(matrix, gradients[..., tf.newaxis])[..., 0]
    return weights, -tf.reduce_sum(gradients * weights, axis=-1)


def _sizes(sums: Any, logits: int) -> Any:
    """The weight of a node: the norm of its second derivatives, 0 without rows."""
    return tf.norm(sums[..., logits:], axis=-1)


def _shape(tensor: Any) -> list[int]:
    return tensor.shape.as_list()


def leaves(numbers: Any, features: Any, thresholds: Any, is_category, depth: int):
    """Returns the node in which each row ends, in each tree: int32 [batch, trees].

    Args:
      numbers: int32 [batch, features]; bucket numbers.
      features: int32 [trees, nodes]; the feature that divides a node, -1 for none.
      thresholds: int32 [trees, nodes]; the bucket that divides it.
      is_category: bool [features].
      depth: Layers of a tree.
    """
    trees = features.shape[0]
    nodes = tf.zeros([tf.shape(numbers)[0], trees], tf.int32)
    tree = tf.range(trees)[tf.newaxis, :] + tf.zeros_like(nodes)
    for _ in range(depth):
        place = tf.stack([tree, nodes], axis=-1)
        feature = tf.gather_nd(features, place)
        threshold = tf.gather_nd(thresholds, place)
        read = tf.maximum(feature, 0)
        number = tf.gather(numbers, read, axis=1, batch_dims=1)
        is_left = tf.where(
            tf.gather(is_category, read),
            tf.equal(number, threshold),
            number <= threshold,
        )
        child = 2 * nodes + 2 - tf.cast(is_left, tf.int32)
        nodes = tf.where(feature < 0, nodes, child)
    return nodes


def pruned(features: Any, gains: Any, depth: int) -> Any:
    """Takes back divisions that lose, from the leaves up: int32 [nodes]."""
    for layer in reversed(range(depth)):
        start, end = 2**layer - 1, 2 ** (layer + 1) - 1
        children = tf.reshape(features[end : 2 * end + 1], [-1, 2])
        loses = tf.logical_and(
            tf.reduce_all(children < 0, axis=1), gains[start:end] < 0.0
        )
        own = tf.where(loses, -tf.ones_like(features[start:end]), features[start:end])
        features = tf.concat([features[:start], own, features[end:]], axis=0)
    return features
