"""The model_fn of tf.estimator's boosted trees.

TensorFlow 2.9 removed the Estimators, and later the kernels that they were made of. The
same algorithm, layer by layer as in "TF Boosted Trees: A scalable TensorFlow based
framework for gradient boosting" (Ponomareva et al. 2017), stands here on ordinary ops:
gradients of the loss are summed by node and bucket over some batches, then each node of
the deepest layer is divided where that gains most. All of its state is in variables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline import compat_boosted_splits as splits_lib
from pipeline.compat import estimator, tf
from pipeline.compat_boosted_features import Columns, quantiles
from pipeline.types import UserError

_PRUNING = ("none", "pre", "post")


@dataclasses.dataclass(frozen=True)
class TreeOptions:
    """How trees grow; `compat_boosted_trees` says what each means.

    Raises:
      ValueError: One is out of its range.
    """

    n_trees: int
    max_depth: int
    learning_rate: float
    l1: float
    l2: float
    tree_complexity: float
    min_node_weight: float
    center_bias: bool
    pruning_mode: str
    quantile_sketch_epsilon: float

    def __post_init__(self):
        for name in (
            "n_trees",
            "max_depth",
            "learning_rate",
            "quantile_sketch_epsilon",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be > 0")
        for name in ("l1", "l2", "tree_complexity", "min_node_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be >= 0")
        if self.pruning_mode not in _PRUNING:
            raise ValueError(
                f"pruning_mode is {self.pruning_mode!r}, not one of"
                f" {', '.join(_PRUNING)}"
            )
        if (self.pruning_mode != "none") != (self.tree_complexity > 0):
            raise ValueError(
                "pruning_mode and tree_complexity > 0 need each other; they are"
                f" {self.pruning_mode!r} and {self.tree_complexity}"
            )

    @property
    def slots(self) -> int:
        """Nodes of the deepest layer that is divided."""
        return 1 << (self.max_depth - 1)

    @property
    def nodes(self) -> int:
        return (1 << (self.max_depth + 1)) - 1

    @property
    def quantiles(self) -> int:
        return int(1.0 / self.quantile_sketch_epsilon)

    @property
    def penalties(self) -> splits_lib.Penalties:
        return splits_lib.Penalties(
            self.l1, self.l2, self.tree_complexity, self.min_node_weight
        )


def make_model_fn(
    head: Any, columns: Columns, options: TreeOptions, batches_per_layer: int
) -> Callable[..., Any]:
    """Returns a model_fn.

    Args:
      head: A head; its loss must have second derivatives.
      columns: What the trees read.
      options: How they grow.
      batches_per_layer: After how many batches a layer grows.
    """

    def model_fn(features, labels, mode, config):
        if config.num_worker_replicas > 1 or config.train_distribute:
            raise UserError(
                "boosted trees train in one process without a distribution strategy:"
                " leave out TF_CONFIG and RunConfig's train_distribute"
            )
        values = columns.values(features)
        with tf.compat.v1.variable_scope("boosted_trees", use_resource=True):
            trees = _Trees(columns, options, head.logits_dimension)
            numbers = columns.bucket_numbers(values, trees.boundaries)
            logits, nodes = trees.logits(numbers)

            def train_op_fn(loss):
                return _Step(trees, options, batches_per_layer).op(
                    loss, logits, numbers, nodes, columns.dense_numbers, values
                )

            spec = head.create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                logits=logits,
                train_op_fn=train_op_fn,
            )
            if mode != estimator.ModeKeys.TRAIN:
                return spec
            with tf.control_dependencies([spec.train_op]):
                grown = [trees.finished.read_value(), trees.attempts.read_value()]
        stop = _StopWhenGrown(grown, options)
        return spec._replace(training_hooks=[*spec.training_hooks, stop])

    return model_fn


class _Trees:
    """The trees as variables.

    Attributes:
      size: The number of logits.
      buckets: All buckets of the features.
      boundaries: float32 [numbers, quantiles - 1], or None.
      features, thresholds: int32 [trees, nodes]; see `splits.leaves`.
      gains: float32 [trees, nodes]; what the division of a node gained.
      weights: float32 [trees, nodes, logits]; what a tree adds that ends there.
      bias: float32 [logits]; what is added to all rows.
      finished: int32; trees that are whole.
      layers: int32; layers of the tree that grows.
      attempts: int64; how often a layer was tried.
    """

    def __init__(self, columns: Columns, options: TreeOptions, size: int):
        self.size = size
        self.buckets = splits_lib.Buckets(columns.features)
        self.depth = options.max_depth
        shape = [options.n_trees, options.nodes]
        self.boundaries = None
        if columns.numbers:
            numbers = [columns.numbers, options.quantiles - 1]
            self.boundaries = _variable("boundaries", numbers, tf.float32, np.inf)
        self.features = _variable("features", shape, tf.int32, -1)
        self.thresholds = _variable("thresholds", shape, tf.int32)
        self.gains = _variable("gains", shape, tf.float32)
        self.weights = _variable("weights", [*shape, size], tf.float32)
        self.bias = _variable("bias", [size], tf.float32)
        self.finished = _variable("finished", [], tf.int32)
        self.layers = _variable("layers", [], tf.int32)
        self.attempts = _variable("attempts", [], tf.int64)

    def logits(self, numbers: Any) -> tuple[Any, Any]:
        """Returns logits, and each row's node in each tree: int32 [batch, trees]."""
        nodes = splits_lib.leaves(
            numbers,
            self.features,
            self.thresholds,
            self.buckets.is_category,
            self.depth,
        )
        tree = tf.range(nodes.shape[1])[tf.newaxis, :] + tf.zeros_like(nodes)
        each = tf.gather_nd(self.weights, tf.stack([tree, nodes], axis=-1))
        return tf.reduce_sum(each, axis=1) + self.bias, nodes


class _Step:
    """What a training step does.

    Args:
      trees: The trees.
      options: How they grow.
      batches: After how many batches a layer grows.
    """

    def __init__(self, trees: _Trees, options: TreeOptions, batches: int):
        self._trees = trees
        self._options = options
        self._batches = batches
        statistics = trees.size + trees.size**2
        shape = [options.slots, trees.buckets.total, statistics]
        # In checkpoints, so that a run goes on in the middle of a layer.
        self._sums = _variable("sums", shape, tf.float32)
        self._count = _variable("batches", [], tf.int64)
        self._bias_sums = _variable("bias_sums", [statistics], tf.float32)
        self._needs_bias = _variable("needs_bias", [], tf.bool, options.center_bias)

    def op(self, loss, logits, numbers, nodes, dense_numbers, values) -> Any:
        """Returns the train_op."""
        gradients = tf.gradients(loss, logits)[0]
        rows = tf.concat([gradients, self._hessians(gradients, logits)], axis=1)

        def step():
            if self._options.center_bias:
                is_done = tf.cond(
                    self._needs_bias,
                    lambda: self._center(rows),
                    lambda: self._add(rows, numbers, nodes),
                )
            else:
                is_done = self._add(rows, numbers, nodes)
            with tf.control_dependencies([is_done]):
                global_step = tf.compat.v1.train.get_or_create_global_step()
                added = tf.compat.v1.assign_add(global_step, 1)
            return _true_after([added])

        if self._trees.boundaries is None:
            return step().op
        ready = _variable("boundaries_ready", [], tf.bool, False)
        return tf.cond(
            ready, step, lambda: self._take_numbers(dense_numbers(values), ready)
        ).op

    def _hessians(self, gradients: Any, logits: Any) -> Any:
        """Second derivatives: [batch, logits**2], each row a matrix."""
        size = self._trees.size
        rows = [tf.gradients(g, logits)[0] for g in tf.unstack(gradients, size, axis=1)]
        return tf.reshape(tf.stack(rows, axis=1), [-1, size**2])

    def _take_numbers(self, numbers: Any, ready: Any) -> Any:
        """Keeps the numbers of as many batches as a layer takes, for the quantiles."""
        seen = tf.compat.v1.get_variable(
            "numbers",
            initializer=lambda: tf.zeros([0, numbers.shape[1]]),
            validate_shape=False,
            trainable=False,
            collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES],
        )
        together = tf.concat([seen.read_value(), numbers], axis=0)
        with tf.control_dependencies([self._count.assign_add(1)]):
            is_last = self._count.read_value() >= self._batches

        def finish():
            found = quantiles(together, self._options.quantiles)
            return _true_after(
                [
                    self._trees.boundaries.assign(found),
                    ready.assign(True),
                    self._count.assign(0),
                    seen.assign(numbers[:0], read_value=False),
                ]
            )

        def keep():
            return _true_after([seen.assign(together, read_value=False)])

        return tf.cond(is_last, finish, keep)

    def _center(self, rows: Any) -> Any:
        """Adds to the bias until a step changes it by less than a hundredth."""
        added = self._bias_sums.assign_add(tf.reduce_mean(rows, axis=0))
        with tf.control_dependencies([added, self._count.assign_add(1)]):
            is_last = self._count.read_value() >= self._batches

        def move():
            means = self._bias_sums.read_value() / float(self._batches)
            change, _ = splits_lib.weights_and_gains(
                means, self._options.penalties, self._trees.size
            )
            before = self._trees.bias.read_value()
            goes_on = tf.reduce_all(tf.abs(change) > 0.01 * tf.abs(before))
            with tf.control_dependencies([change, goes_on]):
                return _true_after(
                    [
                        self._trees.bias.assign_add(change),
                        self._needs_bias.assign(goes_on),
                        self._bias_sums.assign(tf.zeros_like(means)),
                        self._count.assign(0),
                    ]
                )

        return tf.cond(is_last, move, lambda: tf.constant(True))

    def _add(self, rows: Any, numbers: Any, nodes: Any) -> Any:
        """Adds a batch to the sums of the layer, and divides its nodes in the end."""
        trees = self._trees
        tree = tf.minimum(trees.finished.read_value(), self._options.n_trees - 1)
        layer = trees.layers.read_value()
        first = tf.bitwise.left_shift(1, layer) - 1
        # A row whose node was not divided stays behind in an upper layer.
        places = tf.gather(nodes, tree, axis=1) - first
        # Where all trees are whole, rows are below the last one's layers.
        is_there = tf.logical_and(places >= 0, places < self._options.slots)
        places = tf.where(is_there, places, -tf.ones_like(places))
        sums = trees.buckets.sums(places, numbers, rows, self._options.slots)
        added = self._sums.assign_add(sums)
        with tf.control_dependencies([added, self._count.assign_add(1)]):
            can_grow = trees.finished.read_value() < self._options.n_trees
            is_last = self._count.read_value() >= self._batches
        return tf.cond(
            tf.logical_and(can_grow, is_last),
            lambda: self._new_layer(tree, layer, first),
            lambda: tf.constant(True),
        )

    def _new_layer(self, tree: Any, layer: Any, first: Any) -> Any:
        trees, options = self._trees, self._options
        sums = self._sums.read_value()
        splits = splits_lib.best_splits(
            sums / float(self._batches), trees.buckets, options.penalties, trees.size
        )
        wanted = splits.gains > (0.0 if options.pruning_mode == "pre" else -np.inf)
        slots = tf.boolean_mask(tf.range(options.slots), wanted)
        parents = first + slots
        best = tf.gather(splits.buckets, slots)

        weights = tf.gather(trees.weights.read_value(), tree)
        inherited = tf.gather(weights, parents)
        for child, change in ((1, splits.left), (2, splits.right)):
            value = inherited + options.learning_rate * tf.gather(change, slots)
            places = (2 * parents + child)[:, tf.newaxis]
            weights = tf.tensor_scatter_nd_update(weights, places, value)

        def divided(variable, values):
            row = tf.gather(variable.read_value(), tree)
            return tf.tensor_scatter_nd_update(row, parents[:, tf.newaxis], values)

        features = divided(trees.features, tf.gather(trees.buckets.feature_of, best))
        thresholds = divided(trees.thresholds, tf.gather(trees.buckets.number_of, best))
        gains = divided(trees.gains, tf.gather(splits.gains, slots))
        # A tree that finds nothing more to divide is whole as well.
        is_whole = tf.logical_or(
            layer + 1 >= options.max_depth, tf.equal(tf.size(slots), 0)
        )
        if options.pruning_mode == "post":
            features = tf.where(
                is_whole,
                splits_lib.pruned(features, gains, options.max_depth),
                features,
            )
        rows = [weights, features, thresholds, gains]
        variables = [trees.weights, trees.features, trees.thresholds, trees.gains]
        with tf.control_dependencies([*rows, is_whole]):
            return _true_after(
                [
                    *(
                        variable.scatter_nd_update([[tree]], row[tf.newaxis])
                        for variable, row in zip(variables, rows, strict=True)
                    ),
                    trees.finished.assign_add(tf.cast(is_whole, tf.int32)),
                    trees.layers.assign(tf.where(is_whole, 0, layer + 1)),
                    trees.attempts.assign_add(1),
                    self._sums.assign(tf.zeros_like(sums)),
                    self._count.assign(0),
                ]
            )


class _StopWhenGrown(estimator.SessionRunHook):
    """Ends training after the last tree, or where trees will not grow any more."""

    def __init__(self, states: list[Any], options: TreeOptions):
        self._states = states
        self._trees = options.n_trees
        self._attempts = 2 * options.n_trees * options.max_depth

    def before_run(self, run_context: Any) -> Any:
        return estimator.SessionRunArgs(self._states)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        trees, attempts = run_values.results
        if trees >= self._trees or attempts > self._attempts:
            run_context.request_stop()


def _true_after(done: list[Any]) -> Any:
    """What a branch of tf.cond returns; it must return a tensor."""
    with tf.control_dependencies(done):
        return tf.constant(True)


def _variable(name: str, shape: list[int], dtype: Any, value: Any = 0) -> Any:
    return tf.compat.v1.get_variable(
        name,
        shape,
        dtype,
        initializer=tf.compat.v1.constant_initializer(value),
        trainable=False,
    )
