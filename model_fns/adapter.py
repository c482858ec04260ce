"""The one adapter from a Keras model to an Estimator's model_fn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from model_fns import curves, hparams, optimizers, step_loop
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError


def _sources(tensors: Iterable[tf.Tensor], known: Collection = ()) -> set:
    """Returns the operations that tensors or operations are computed from.

    Args:
      known: Operations behind which there is no need to look.
    """
    found = set()
    waiting = [getattr(tensor, "op", tensor) for tensor in tensors]
    while waiting:
        operation = waiting.pop()
        if operation not in found and operation not in known:
            found.add(operation)
            waiting += (tensor.op for tensor in operation.inputs)
            waiting += operation.control_inputs
    return found


def of_this_call(items: Iterable, features: Mapping[str, tf.Tensor]) -> list:
    """Leaves out losses or updates that do not come from the features.

    A Functional model is called on placeholders when it is defined, and again on the
    features, in a loop of steps twice; its layers keep what they added in all calls.
    """
    graph = tf.compat.v1.get_default_graph()
    # In a loop's graph variables are placeholders, too.
    captured = {tensor.op for tensor in getattr(graph, "internal_captures", ())}
    ours = _sources(
        part
        for feature in features.values()
        for part in tf.nest.flatten(feature, expand_composites=True)
    )
    return [
        item
        for item in items
        if item.graph is graph
        and not any(
            operation.type == "Placeholder"
            for operation in _sources([item], ours) - captured
        )
    ]


def _penalties(
    variables: Iterable[tf.Variable], settings: hparams.Custom
) -> list[tf.Tensor]:
    weights = [v for v in variables if v.shape.rank >= 2]
    found = []
    if settings.l1:
        found += [settings.l1 * tf.reduce_sum(tf.abs(w)) for w in weights]
    if settings.l2:
        found += [settings.l2 * tf.reduce_sum(tf.square(w)) for w in weights]
    return found


def model_fn_from_keras(
    build_model: Callable[[], tf_keras.Model],
    optimization: hparams.Custom | optimizers.MakeOptimizer,
    head: estimator.Head,
) -> Callable[..., estimator.EstimatorSpec]:
    """Wraps a Keras model of any kind (Sequential, Functional, Subclassed).

    What a plain model_fn around Keras layers forgets is collected here: the
    optimizer counts in the Estimator's global step (else training never ends),
    BatchNormalization's moving averages are updated with each step, and the losses
    that layers add (regularisation) are part of the loss.

    Args:
      build_model: Makes the model; called in the graph of each mode. The model takes
        a dict of raw columns ([batch] each) and returns logits
        [batch, head.logits_dimension].
      optimization: How to train; or a function that makes an optimizer of
        `tf_keras.optimizers.legacy` or `tf.compat.v1.train`. A learning rate of a
        Keras optimizer that is a number becomes a variable, so that training which
        goes on from a checkpoint keeps the old rate; a function or a schedule does
        not.
      head: Gives loss, metrics and export outputs; see `heads.head`.
    """
    settings = hparams.Custom()
    make_optimizer = optimization
    if isinstance(optimization, hparams.Custom):
        settings = optimization
        make_optimizer = lambda: optimizers.make(settings)  # noqa: E731

    def model_fn(features, labels, mode) -> estimator.EstimatorSpec:
        training = mode == estimator.ModeKeys.TRAIN
        model = build_model()
        # A model gets raw columns; under mixed precision it would round them.
        model._autocast = False
        optimizer = make_optimizer() if training else None
        if training:
            optimizers.check(optimizer)

        def make_spec(features, labels) -> estimator.EstimatorSpec:
            logits = model(dict(features), training=training)
            variables = model.trainable_variables

            def train_op(loss: tf.Tensor) -> tf.Operation:
                return optimizers.train_op(
                    optimizer, loss, variables, settings.accumulate
                )

            added = of_this_call(model.losses, features)
            return head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=logits,
                labels=labels,
                train_op_fn=train_op if training else None,
                update_ops=of_this_call(model.updates, features),
                regularization_losses=[*added, *_penalties(variables, settings)]
                or None,
            )

        loop = step_loop.take() if training else None
        if loop is None:
            return make_spec(features, labels)

        if settings.accumulate > 1:
            raise UserError("--steps_per_run: accumulate in --hparams needs 1")
        # Outside of the loop, where their variables belong.
        model(dict(features), training=True)
        optimizers.create_variables(optimizer, model.trainable_variables)

        def step(features, labels):
            spec = make_spec(features, labels)
            return spec.train_op, spec.loss

        train_op, loss = step_loop.run_steps(
            loop,
            step,
            features,
            labels,
            before=lambda: curves.report_rate(optimizer),
        )
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn
