"""TensorFlow Serving's REST bodies to tensors and back; knows no web framework.

https://www.tensorflow.org/tfx/serving/api_rest. Beyond that API an error names the
input or feature that is wrong.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from export.requests import json_value
from pipeline.compat import tf

DEFAULT_SIGNATURE = "serving_default"
_INT64 = (-(2**63), 2**63 - 1)


class BadRequest(Exception):
    """A request that cannot be answered.

    Args:
      message: What is wrong with it, for its sender.
      status: HTTP status code.
    """

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


def parse(body: bytes) -> dict[str, Any]:
    """Returns the JSON object of a request."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("the body is not a JSON object")
    return value


def _decoded(value: Any, name: str) -> Any:
    """Puts bytes in the place of {"b64": TEXT}, at any depth, and of text."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, list):
        return [_decoded(part, name) for part in value]
    if isinstance(value, dict):
        if list(value) != ["b64"] or not isinstance(value["b64"], str):
            raise BadRequest(f'input {name}: an object other than {{"b64": TEXT}}')
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadRequest(f"input {name}: b64 is not base64: {error}") from None
    return value


def _flat(value: Any) -> list:
    if not isinstance(value, list):
        return [value]
    return [leaf for part in value for leaf in _flat(part)]


def _fits(value: Any, dtype: tf.DType) -> bool:
    if isinstance(value, bool):
        return dtype == tf.bool
    if dtype == tf.string:
        return isinstance(value, bytes)
    if dtype.is_integer:
        return isinstance(value, int) and _INT64[0] <= value <= _INT64[1]
    return isinstance(value, (int, float))


def _tensor(name: str, value: Any, spec: tf.TensorSpec) -> tf.Tensor:
    decoded = _decoded(value, name)
    for leaf in _flat(decoded):
        if not _fits(leaf, spec.dtype):
            shown = json.dumps(json_value(leaf), ensure_ascii=False)[:80]
            raise BadRequest(f"input {name}: {shown} is not of type {spec.dtype.name}")
    try:
        tensor = tf.constant(decoded, spec.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadRequest(
            f"input {name}: no {spec.dtype.name} tensor: {error}"
        ) from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise BadRequest(
            f"input {name}: its shape is {list(tensor.shape)} instead of"
            f" {['batch' if n is None else n for n in spec.shape]}"
        )
    return tensor


def _columns(instances: Any, inputs: Sequence[str]) -> dict[str, list]:
    """Returns the values of `instances`, rows, by input."""
    if not isinstance(instances, list):
        raise BadRequest("instances is not a list")
    by_name = all(isinstance(i, dict) and list(i) != ["b64"] for i in instances)
    if not by_name or not instances:
        if len(inputs) != 1 and instances:
            raise BadRequest(
                f"instances must be objects with the inputs {', '.join(inputs)}"
            )
        return {name: list(instances) for name in inputs}
    for i, instance in enumerate(instances):
        _check_names(instance, inputs, f"instance {i}")
    return {name: [instance[name] for instance in instances] for name in inputs}


def _check_names(given: Mapping[str, Any], wanted: Sequence[str], where: str) -> None:
    for name in wanted:
        if name not in given:
            raise BadRequest(f"{where} lacks the input {name}")
    for name in given:
        if name not in wanted:
            raise BadRequest(
                f"{where} has the unknown input {name}; there are {', '.join(wanted)}"
            )


def predict_inputs(
    body: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec]
) -> dict[str, tf.Tensor]:
    """Returns the inputs of a `predict` call.

    Args:
      body: With either `instances`, a list of rows, or `inputs`, values by input.
      specs: Input name to type and shape, of the signature that is called.
    """
    if ("instances" in body) == ("inputs" in body):
        raise BadRequest("the body needs either instances or inputs")
    names = list(specs)
    if "instances" in body:
        values = _columns(body["instances"], names)
    else:
        values = body["inputs"]
        if not isinstance(values, dict) or list(values) == ["b64"]:
            if len(names) != 1:
                raise BadRequest(f"inputs must be an object of {', '.join(names)}")
            values = {names[0]: values}
        _check_names(values, names, "inputs")
    return {name: _tensor(name, values[name], spec) for name, spec in specs.items()}


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it.
    return json_value(value)


def predict_answer(outputs: Mapping[str, tf.Tensor], in_rows: bool) -> dict[str, Any]:
    """Returns the answer of a `predict` call, in the form of its request."""
    values = {name: _json(value.numpy().tolist()) for name, value in outputs.items()}
    only = len(values) == 1
    if not in_rows:
        return {"outputs": next(iter(values.values())) if only else values}
    if only:
        return {"predictions": next(iter(values.values()))}
    sizes = {name: len(v) if isinstance(v, list) else 1 for name, v in values.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise BadRequest(
            f"outputs of this signature have different numbers of rows ({told}); ask"
            " with inputs instead of instances"
        )
    rows = [
        dict(zip(values, row, strict=True))
        for row in zip(*values.values(), strict=True)
    ]
    return {"predictions": rows}


def _feature(name: str, value: Any) -> tf.train.Feature:
    feature = tf.train.Feature()
    values = _decoded(value if isinstance(value, list) else [value], name)
    kinds = {bytes: feature.bytes_list, int: feature.int64_list}
    kinds[float] = feature.float_list
    types = {type(v) for v in values}
    if len(types) > 1 or not types <= set(kinds):
        raise BadRequest(f"feature {name}: it needs text, or ints, or floats only")
    for kind in types:
        try:
            kinds[kind].value.extend(values)
        except ValueError as error:
            raise BadRequest(f"feature {name}: {error}") from None
    return feature


def examples(body: Mapping[str, Any]) -> tf.Tensor:
    """Returns serialized tf.Examples of a `classify` or `regress` call, string [batch].

    A JSON number without a point is an int64, as in TensorFlow Serving: of a float
    feature write 1.0.
    """
    given, context = body.get("examples"), body.get("context", {})
    if not isinstance(given, list) or not all(isinstance(e, dict) for e in given):
        raise BadRequest("the body needs examples, a list of objects")
    if not isinstance(context, dict):
        raise BadRequest("context is not an object")
    serialized = []
    for row in given:
        example = tf.train.Example()
        for name, value in {**context, **row}.items():
            example.features.feature[name].CopyFrom(_feature(name, value))
        serialized.append(example.SerializeToString())
    return tf.constant(serialized, tf.string)


def classify_answer(outputs: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """Returns [label, score] of every class of each row."""
    scores = _json(outputs["scores"].numpy().tolist())
    if "classes" in outputs:
        labels = _json(outputs["classes"].numpy().tolist())
    else:
        labels = [[""] * len(row) for row in scores]
    return {
        "results": [
            [list(pair) for pair in zip(*row, strict=True)]
            for row in zip(labels, scores, strict=True)
        ]
    }


def regress_answer(outputs: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """Returns one number a row."""
    return {"results": _json(np.reshape(outputs["outputs"].numpy(), [-1]).tolist())}
