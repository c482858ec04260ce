"""When a training's batches arrive, seen from inside of its graph."""

from __future__ import annotations

from pipeline.compat import tf

_v1 = tf.compat.v1
_GET_NEXT = "IteratorGetNext"
_MADE = "monitoring/arrivals"


class Arrivals:
    """Tells about the batch that each call of the session takes.

    Made in a hook's `begin`, when the graph is there and can still be added to. Only for
    graphs of one replica that run one step a call: others take their batches in loops
    and conditions, which nothing outside can look into.

    Attributes:
      waited: float64 scalar: seconds from the start of the call to the batch; fetch it
        with a step.
      count: An operation that, run with a step, counts the batch when it is there.
    """

    def __init__(self, taken: list[tf.Operation]):
        start = tf.timestamp()
        with tf.control_dependencies(taken):
            self.waited = tf.timestamp() - start
        self._counted = _v1.get_variable(
            "monitoring/batches",
            [],
            tf.int64,
            initializer=_v1.zeros_initializer(),
            trainable=False,
            use_resource=True,
            collections=[_v1.GraphKeys.LOCAL_VARIABLES],
        )
        with tf.control_dependencies(taken):
            self.count = self._counted.assign_add(1, read_value=False)
        self._value = self._counted.read_value()

    def arrived(self, session: _v1.Session) -> int:
        """Returns how many batches were counted, also while a step runs."""
        return int(session.run(self._value))


def arrivals() -> Arrivals | None:
    """Returns the arrivals in the current graph; None where rows come another way.

    All who ask in a graph get the same ones.
    """
    made = _v1.get_collection_ref(_MADE)
    if not made:
        operations = _v1.get_default_graph().get_operations()
        taken = [operation for operation in operations if operation.type == _GET_NEXT]
        if not taken:
            return None
        made.append(Arrivals(taken))
    return made[0]
