"""Several training steps in one call of a session, as `steps_per_execution` of Keras.

A call of a session costs about as much as a step of a small network. The loop runs in
the graph and takes its batches from the input_fn's iterator itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from pipeline.compat import tf
from pipeline.types import UserError

_v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class StepLoop:
    """How many steps a call of the session runs.

    Attributes:
      steps: A call ends where the global step is a multiple of it, so let steps
        between checkpoints and summaries be multiples, too.
      last_step: Global step at which training ends; no call goes beyond it.
    """

    steps: int
    last_step: int

    def __post_init__(self):
        if self.steps < 1:
            raise ValueError("steps must be at least 1")


def _iterator(tensors: list[tf.Tensor]) -> tf.Operation:
    """Returns the operation that took the batch from the input_fn's iterator."""
    found = {tensor.op for tensor in tensors}
    if len(found) != 1 or tensors[0].op.type != "IteratorGetNext":
        raise UserError(
            "--steps_per_run: several steps in one call need an input_fn that returns"
            " a tf.data.Dataset, on one replica; use --steps_per_run=1"
        )
    return found.pop()


def _next_batch(first: Any) -> Any:
    """Returns the iterator's next batch, in the structure of the first."""
    tensors = tf.nest.flatten(first, expand_composites=True)
    taken = _iterator(tensors)
    outputs = tf.raw_ops.IteratorGetNext(
        iterator=taken.inputs[0],
        output_types=[output.dtype for output in taken.outputs],
        output_shapes=[output.shape for output in taken.outputs],
    )
    return tf.nest.pack_sequence_as(
        first,
        [outputs[tensor.value_index] for tensor in tensors],
        expand_composites=True,
    )


def run_steps(
    loop: StepLoop,
    step: Callable[[Any, Any], tuple[tf.Operation, tf.Tensor]],
    features: Any,
    labels: Any,
) -> tuple[tf.Operation, tf.Tensor]:
    """Returns an operation that trains several steps, and the last one's loss.

    Args:
      loop: How many.
      step: Builds a step from a batch: (its train_op, which raises the global step
        by one, its scalar loss). It is called inside of a loop, so all variables must
        exist; summaries that it makes are left out.
      features: A batch as the input_fn's iterator gave it. It is not used itself.
      labels: Likewise; may be None.
    """
    global_step = _v1.train.get_global_step()
    first = (features,) if labels is None else (features, labels)

    def body(done, loss):
        del done, loss
        batch = _next_batch(first)
        train_op, loss = step(batch[0], None if labels is None else batch[1])
        with tf.control_dependencies([train_op]):
            reached = global_step.read_value()
            last = tf.logical_or(
                tf.equal(reached % loop.steps, 0), reached >= loop.last_step
            )
            return last, tf.identity(loss)

    kept = {
        key: list(_v1.get_collection(key))
        for key in (_v1.GraphKeys.SUMMARIES, _v1.GraphKeys.LOSSES)
    }
    _, loss = tf.while_loop(
        lambda done, loss: tf.logical_not(done),
        body,
        (tf.constant(False), tf.constant(0.0)),
        parallel_iterations=1,
    )
    # What stands in these was made in the loop, out of reach from here.
    for key, values in kept.items():
        _v1.get_collection_ref(key)[:] = values
    return loss.op, loss
