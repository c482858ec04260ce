"""Several training steps in one call of a session, as `steps_per_execution` of Keras.

A call of a session costs about as much as a step of a small network. The loop runs in
the graph and takes its batches from the input_fn's iterator itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.compat import tf
from pipeline.types import UserError

_v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class StepLoop:
    """How many steps a call of the session runs.

    Attributes:
      ends: A call ends where the global step is a multiple of one of these, e.g. of
        the steps asked for, or of those between checkpoints.
      last_step: Global step at which training ends; no call goes beyond it.
    """

    ends: tuple[int, ...]
    last_step: int

    def __post_init__(self):
        if not self.ends or min(self.ends) < 1:
            raise ValueError("ends needs numbers of at least 1")

    @property
    def longest(self) -> int:
        """The most steps that a call may run."""
        return min(self.ends)

    def end_of_call(self, step: int) -> int:
        """Returns the global step after the call that begins at `step`."""
        return min(self.last_step, *((step // end + 1) * end for end in self.ends))


_ASKED = "step_loop"


def ask(loop: StepLoop) -> None:
    """Asks the model_fn that builds the current graph for a loop."""
    _v1.add_to_collection(_ASKED, loop)


def take() -> StepLoop | None:
    """Returns what was asked for; afterwards nothing is."""
    asked = _v1.get_collection_ref(_ASKED)
    return asked.pop() if asked else None


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


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Forgets summaries and losses made inside: the graph around can't reach them."""
    kept = {
        key: list(_v1.get_collection(key))
        for key in (_v1.GraphKeys.SUMMARIES, _v1.GraphKeys.LOSSES)
    }
    yield
    for key, values in kept.items():
        _v1.get_collection_ref(key)[:] = values


def run_steps(
    loop: StepLoop,
    step: Callable[[Any, Any], tuple[tf.Operation, tf.Tensor]],
    features: Any,
    labels: Any,
    before: Callable[[], list[tf.Tensor]] = list,
) -> tuple[tf.Operation, tf.Tensor]:
    """Returns an operation that trains several steps, and the last one's loss.

    Args:
      loop: How many.
      step: Builds a step from a batch: (its train_op, which raises the global step
        by one, its scalar loss). It is called inside of a loop: variables should
        exist, and what it adds to summaries is left out.
      features: A batch as the input_fn's iterator gave it. It is not used itself.
      labels: Likewise; may be None.
      before: Makes what is computed before the first step of a call.
    """
    global_step = _v1.train.get_global_step()
    first = (features,) if labels is None else (features, labels)

    def body(done, loss):
        del done, loss
        batch = _next_batch(first)
        train_op, loss = step(batch[0], None if labels is None else batch[1])
        with tf.control_dependencies([train_op]):
            reached = global_step.read_value()
            rests = reached % tf.constant(loop.ends, tf.int64)
            last = tf.reduce_any(tf.equal(rests, 0)) | (reached >= loop.last_step)
            return last, tf.identity(loss)

    with tf.control_dependencies(before()):
        start = (tf.identity(False), tf.identity(0.0))
    with _nothing_collected():
        _, loss = tf.while_loop(
            lambda done, loss: tf.logical_not(done),
            body,
            start,
            parallel_iterations=1,
        )
    return loss.op, loss
