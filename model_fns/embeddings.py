"""A row as its last hidden layer sees it, for search by similarity and the like.

A model keeps the tensor in its graph's collection; what exports looks there. A model of
your own does the same: `embeddings.keep(hidden)` where its Keras layers are called, or in
its model_fn.
"""

from __future__ import annotations

from pipeline.compat import tf

_COLLECTION = "embeddings"
_PREMADE_LOGITS = "dnn/logits/MatMul"


def keep(hidden: tf.Tensor) -> None:
    """Keeps what the last layer of a model reads, float [batch, width]."""
    # Keras calls layers without a graph, too, to find out shapes.
    if not tf.executing_eagerly():
        tf.compat.v1.add_to_collection(_COLLECTION, hidden)


def keep_of_premade() -> None:
    """Keeps what the network of a premade Estimator computes its logits from.

    Call it in the graph after the model_fn; a linear model has nothing to keep.
    """
    graph = tf.compat.v1.get_default_graph()
    if _PREMADE_LOGITS in {operation.name for operation in graph.get_operations()}:
        keep(graph.get_operation_by_name(_PREMADE_LOGITS).inputs[0])


def kept(graph: tf.Graph) -> tf.Tensor | None:
    """Returns what a graph's model has kept.

    A Functional model is called on placeholders when it is defined, and again on the
    features: the last call counts.
    """
    found = graph.get_collection(_COLLECTION)
    return found[-1] if found else None
