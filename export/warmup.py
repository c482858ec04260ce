"""Requests that TensorFlow Serving sends to a version before it serves it.

The file `assets.extra/tf_serving_warmup_requests` is a TFRecord of
tensorflow.serving.PredictionLog. The few messages are encoded here: the package
tensorflow-serving-api, which has their classes, would bring gRPC and pin TensorFlow.
Field numbers (tensorflow/serving, tensorflow_serving/apis/*.proto):

    PredictionLog          2 classify_log, 3 regress_log, 6 predict_log
    each log               1 request
    PredictRequest         1 model_spec, 2 inputs (map: 1 key, 2 TensorProto)
    Classification- and
    RegressionRequest      1 model_spec, 2 input
    ModelSpec              1 name, 3 signature_name
    Input                  1 example_list, in it 1 examples
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from export import requests
from input_fns import wire
from pipeline.compat import tf
from pipeline.types import Column

FILE_NAME = "tf_serving_warmup_requests"
MAX_RECORDS = 1000
"""TensorFlow Serving refuses a version with more."""

_LOG_FIELDS = {"classify": 2, "regress": 3, "predict": 6}


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a message."""
    return wire.message(wire.varint(number << 3 | 2), content)


def _model_spec(model: str, signature: str) -> bytes:
    return _field(1, model.encode()) + _field(3, signature.encode())


def _log(kind: str, request: bytes) -> bytes:
    return _field(_LOG_FIELDS[kind], _field(1, request))


def predict_log(model: str, signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """Returns the PredictionLog of a Predict call."""
    request = _field(1, _model_spec(model, signature))
    for name, value in inputs.items():
        proto = tf.make_tensor_proto(value).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, proto))
    return _log("predict", request)


def examples_log(
    kind: str, model: str, signature: str, examples: Sequence[bytes]
) -> bytes:
    """Returns the PredictionLog of a Classify or Regress call."""
    listed = b"".join(_field(1, example) for example in examples)
    given = _field(2, _field(1, listed))
    return _log(kind, _field(1, _model_spec(model, signature)) + given)


def logs(
    model: str,
    kinds: Mapping[str, str],
    examples: Sequence[bytes],
    columns: Sequence[Column],
) -> list[bytes]:
    """Returns serialized PredictionLogs for every signature: one row, then all.

    Those beyond `MAX_RECORDS` are left out.

    Args:
      model: Name under which the model is served.
      kinds: Signature name to what it takes, as `signature_defs.kind` says.
      examples: Rows as serialized tf.Examples.
      columns: The columns of a request.
    """
    found = []
    for rows in (examples[:1], examples):
        for signature, kind in kinds.items():
            if kind in ("classify", "regress"):
                found.append(examples_log(kind, model, signature, rows))
                continue
            if kind == "examples":
                inputs = {"examples": np.array(rows, object)}
            else:
                inputs = requests.raw_inputs(rows, columns)
            found.append(predict_log(model, signature, inputs))
    return found[:MAX_RECORDS]


def write(directory: str, logs_: Sequence[bytes]) -> None:
    """Writes the file into a version's directory of extra files."""
    with tf.io.TFRecordWriter(os.path.join(directory, FILE_NAME)) as writer:
        for log in logs_:
            writer.write(log)
