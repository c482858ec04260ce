"""LiteRT, once TensorFlow Lite: the network as a flat buffer for devices."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping

import numpy as np

from export.formats.network import Network, refuse
from pipeline.compat import tf

_SIGNATURE = "serving_default"
_MAX_ONE_HOT = 2048


def _without_one_hot(graph_def: tf.compat.v1.GraphDef) -> tf.compat.v1.GraphDef:
    """Puts rows of a unit matrix in the place of OneHot.

    In LiteRT's int8 an OneHot has the scale of what reads it, but its 0 and 1 keep
    theirs: measured, a 1 came out as 2.6 and a 0 as 0.55. The converter makes an OneHot
    of a comparison with a range, too.

    Raises:
      UserError: A matrix would be too large.
    """
    depths = {
        node.name: node.attr["value"].tensor
        for node in graph_def.node
        if node.op == "Const"
    }
    rewritten = tf.compat.v1.GraphDef()
    rewritten.CopyFrom(graph_def)
    del rewritten.node[:]
    for node in graph_def.node:
        if node.op != "OneHot" or node.input[1] not in depths:
            rewritten.node.add().CopyFrom(node)
            continue
        depth = int(tf.make_ndarray(depths[node.input[1]]))
        if depth > _MAX_ONE_HOT:
            raise refuse(
                f"litert_int8 holds a one-hot feature of {depth:,} ids as a matrix of"
                f" {depth:,} rows and columns; at most {_MAX_ONE_HOT:,} are allowed:"
                " give the feature an `embedding`"
            )
        with tf.Graph().as_default() as graph:
            ids = tf.compat.v1.placeholder(
                tf.dtypes.as_dtype(node.attr["TI"].type), [None], "ids"
            )
            tf.gather(tf.constant(np.eye(depth, dtype=np.float32)), ids, name="one_hot")
        for part in graph.as_graph_def().node:
            if part.name == "ids":
                continue
            added = rewritten.node.add()
            added.CopyFrom(part)
            added.input[:] = [
                node.input[0] if name == "ids" else f"{node.name}/{name}"
                for name in part.input
            ]
            whole = part.name == "one_hot"
            added.name = node.name if whole else f"{node.name}/{part.name}"
    return rewritten


def convert(network: Network, examples: Mapping[str, np.ndarray] | None) -> bytes:
    """Returns the network as a LiteRT model with the signature `serving_default`.

    Args:
      network: What to convert.
      examples: Feature name to real values, rows first, from whose ranges weights and
        activations become int8; inputs and outputs stay as they are. None keeps all
        float32.
    """
    if examples is not None:
        network = dataclasses.replace(
            network, graph_def=_without_one_hot(network.graph_def)
        )
    function = network.function()
    module = tf.Module()
    module.run = function
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "network")
        tf.saved_model.save(module, path, signatures={_SIGNATURE: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(path)
        if examples is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: _one_by_one(network, examples)
        return converter.convert()


def _one_by_one(
    network: Network, examples: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    rows = len(next(iter(examples.values())))
    for i in range(rows):
        yield (
            _SIGNATURE,
            {
                spec.name: examples[feature][i : i + 1]
                for feature, spec in network.specs.items()
            },
        )


class Runner:
    """Runs a LiteRT model in its own runtime, the package ai-edge-litert."""

    def __init__(self, content: bytes, network: Network):
        from ai_edge_litert.interpreter import Interpreter

        self._specs = network.specs
        self._run = Interpreter(model_content=content).get_signature_runner(_SIGNATURE)

    def __call__(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the answers for rows of features, as `transform` gives them."""
        return self._run(**{s.name: values[f] for f, s in self._specs.items()})
