"""ONNX: the network for runtimes that are not TensorFlow's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

import numpy as np

from export.formats.network import Network

OPSET = 17


def convert(network: Network) -> bytes:
    """Returns the network as an ONNX model."""
    import tf2onnx

    model, _ = tf2onnx.convert.from_graph_def(
        network.graph_def,
        input_names=list(network.inputs.values()),
        output_names=list(network.outputs.values()),
        opset=OPSET,
    )
    # "age:0" is TensorFlow's way to write the first output of a node.
    for node in model.graph.node:
        node.input[:] = [_plain(name, network) for name in node.input]
        node.output[:] = [_plain(name, network) for name in node.output]
    for value in (*model.graph.input, *model.graph.output):
        value.name = _plain(value.name, network)
    return model.SerializeToString()


def _plain(name: str, network: Network) -> str:
    mine = {*network.inputs.values(), *network.outputs.values()}
    return name.removesuffix(":0") if name in mine else name


class OnnxRuntime:
    """Runs an ONNX model in ONNX Runtime on the CPU."""

    def __init__(self, content: bytes, network: Network):
        import onnxruntime

        self._specs = network.specs
        self._outputs = list(network.outputs)
        self._session = onnxruntime.InferenceSession(
            content, providers=["CPUExecutionProvider"]
        )

    def __call__(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the answers for rows of features, as `transform` gives them."""
        found = self._session.run(
            self._outputs, {s.name: values[f] for f, s in self._specs.items()}
        )
        return dict(zip(self._outputs, found, strict=True))


class OpenVino:
    """Runs an ONNX model in OpenVINO on the CPU, with all floats of 32 bits.

    Its default on processors that have bfloat16 is that, with errors of 1e-3.
    """

    def __init__(self, content: bytes, network: Network):
        import openvino

        self._specs = network.specs
        self._outputs = list(network.outputs)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "model.onnx")
            with open(path, "wb") as f:
                f.write(content)
            self._model = openvino.Core().compile_model(
                path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
            )

    def __call__(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the answers for rows of features, as `transform` gives them."""
        found = self._model({s.name: values[f] for f, s in self._specs.items()})
        return {name: found[name] for name in self._outputs}
