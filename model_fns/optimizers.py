"""From settings to an optimizer, and from an optimizer to the op of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from model_fns import curves, decoupled, fast_adam, hparams, schedules
from pipeline.compat import tf, tf_keras
from pipeline.types import UserError

_v1 = tf.compat.v1
legacy = tf_keras.optimizers.legacy
Optimizer = legacy.Optimizer | _v1.train.Optimizer
MakeOptimizer = Callable[[], Optimizer]


def make(settings: hparams.Optimization) -> legacy.Optimizer:
    """Returns the optimizer with its schedule and the limits of its gradients.

    Premade Estimators take it as `lambda: make(settings)`.
    """
    rate = schedules.Schedule(settings)
    limits = {}
    if settings.clip_norm:
        limits["global_clipnorm"] = settings.clip_norm
    if settings.clip_value:
        limits["clipvalue"] = settings.clip_value
    if settings.optimizer == "adamw":
        return decoupled.AdamW(rate, settings.weight_decay, **limits)
    if settings.optimizer == "lion":
        return decoupled.Lion(rate, settings.weight_decay, **limits)
    if settings.optimizer == "sgd":
        return legacy.SGD(rate, settings.momentum, **limits)
    if settings.optimizer == "rmsprop":
        return legacy.RMSprop(rate, momentum=settings.momentum, **limits)
    kinds = {"adam": fast_adam.Adam, "adagrad": legacy.Adagrad, "ftrl": legacy.Ftrl}
    return kinds[settings.optimizer](rate, **limits)


def check(optimizer: Optimizer) -> None:
    """Refuses an optimizer that does not work in the graph of an Estimator."""
    if not isinstance(optimizer, Optimizer):
        name = type(optimizer).__name__
        raise UserError(
            f"the optimizer {type(optimizer).__module__}.{name} does not work under an"
            f" Estimator; use one of tf_keras.optimizers.legacy, e.g. legacy.{name}, or"
            " of tf.compat.v1.train"
        )


def count_in(optimizer: Optimizer, updates: tf.Variable) -> None:
    """Makes a Keras optimizer count its updates in a variable."""
    # Keras takes a variable once.
    if isinstance(optimizer, legacy.Optimizer) and optimizer._iterations is not updates:
        optimizer.iterations = updates


def create_variables(optimizer: Optimizer, variables: Sequence[tf.Variable]) -> None:
    """Makes a Keras optimizer's own variables, named as those that `train_op` makes."""
    if not isinstance(optimizer, legacy.Optimizer):
        raise UserError("--steps_per_run needs an optimizer of Keras")
    count_in(optimizer, _v1.train.get_or_create_global_step())
    with tf.name_scope("training"):
        optimizer._create_hypers()
        with tf.name_scope(optimizer._name):
            optimizer._create_all_weights(list(variables))


def _apply(
    optimizer: Optimizer, gradients: Sequence, variables: Sequence, updates: tf.Variable
) -> tf.Operation:
    """Changes the variables and counts the update."""
    pairs = list(zip(gradients, variables, strict=True))
    if isinstance(optimizer, legacy.Optimizer):
        return optimizer.apply_gradients(pairs)
    return optimizer.apply_gradients(pairs, global_step=updates)


def train_op(
    optimizer: Optimizer,
    loss: tf.Tensor,
    variables: Sequence[tf.Variable],
    accumulate: int = 1,
) -> tf.Operation:
    """Returns the op of one training step.

    It moves the global step by one. The optimizer counts in the same variable, or,
    where gradients are accumulated, in one of its own, `training/updates`.

    Args:
      optimizer: One that `check` lets pass.
      loss: Scalar; the mean over the batch of each replica.
      variables: What to change.
      accumulate: Steps whose gradients are averaged into one update; more than one
        is for optimizers of Keras.

    Raises:
      UserError: The loss does not depend on a variable.
    """
    step = _v1.train.get_or_create_global_step()
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1:
        # Gradients are summed over replicas.
        loss *= 1.0 / replicas
    gradients = tf.gradients(loss, list(variables))
    used = [(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None]
    if not used:
        raise UserError(
            "the loss depends on no trainable variable of the model, so there is"
            " nothing to train"
        )
    gradients, variables = zip(*used, strict=True)
    curves.report_gradients(gradients)
    if accumulate == 1:
        count_in(optimizer, step)
        with tf.control_dependencies(curves.report_rate(optimizer)):
            return _apply(optimizer, gradients, variables, step)
    if replicas > 1:
        raise UserError("accumulate in --hparams needs training on one replica")
    return _accumulated(optimizer, gradients, variables, step, accumulate)


def _accumulated(
    optimizer: legacy.Optimizer,
    gradients: Sequence,
    variables: Sequence[tf.Variable],
    step: tf.Variable,
    every: int,
) -> tf.Operation:
    """Adds gradients up, and applies their mean each so many steps.

    Sums and counts are variables, so that a checkpoint between two updates is whole.
    """
    with _v1.variable_scope("training", reuse=_v1.AUTO_REUSE):
        updates = _v1.get_variable(
            "updates",
            [],
            tf.int64,
            initializer=_v1.zeros_initializer(),
            trainable=False,
            use_resource=True,
        )
        sums = [
            _v1.get_variable(
                f"accumulated/{variable.op.name}",
                variable.shape,
                variable.dtype.base_dtype,
                initializer=_v1.zeros_initializer(),
                trainable=False,
                use_resource=True,
            )
            for variable in variables
        ]
    count_in(optimizer, updates)
    # What the branch below needs must be made outside of it.
    optimizer._create_all_weights(list(variables))
    with tf.control_dependencies(curves.report_rate(optimizer)):
        added = [
            total.assign_add(tf.convert_to_tensor(gradient), read_value=False)
            for total, gradient in zip(sums, gradients, strict=True)
        ]

    def update():
        means = [total.read_value() / every for total in sums]
        with tf.control_dependencies(means):
            applied = optimizer.apply_gradients(zip(means, variables, strict=True))
        with tf.control_dependencies([applied]):
            emptied = [
                total.assign(tf.zeros_like(total), read_value=False) for total in sums
            ]
        with tf.control_dependencies(emptied):
            return tf.constant(True)

    with tf.control_dependencies(added):
        full = tf.equal((step + 1) % every, 0)
        updated = tf.cond(full, update, lambda: tf.constant(False))
    with tf.control_dependencies([updated]):
        return step.assign_add(1, read_value=False)
