"""Warm-up requests are what TensorFlow Serving reads."""

from __future__ import annotations

import os

import numpy as np
import pytest

from export import warmup
from pipeline.compat import tf
from pipeline.types import Column, ColumnType

COLUMNS = (Column("größe (cm)", ColumnType.FLOAT, default=1.5),)
COLUMNS += (Column("n", ColumnType.INT), Column("s", ColumnType.STRING, default="x"))
KINDS = {
    "classify": "classify",
    "predict": "columns",
    "regress": "regress",
    "serving_default": "examples",
    "transform": "examples",
}


def _example(number: int, text: bytes | None) -> bytes:
    example = tf.train.Example()
    example.features.feature["n"].int64_list.value.append(number)
    if text is not None:
        example.features.feature["s"].bytes_list.value.append(text)
    return example.SerializeToString()


EXAMPLES = [_example(3, None), _example(-1, b"\xff"), _example(2**40, b"y" * 300)]


@pytest.fixture(scope="module")
def prediction_log():
    """The package that has the classes; another encoder than ours."""
    return pytest.importorskip(
        "tensorflow_serving.apis.prediction_log_pb2",
        reason="tensorflow-serving-api is not installed",
    ).PredictionLog


def test_every_signature_has_a_request_of_one_row_and_of_all(prediction_log):
    logs = [prediction_log.FromString(x) for x in _logs()]
    kinds = [log.WhichOneof("log_type") for log in logs]
    one = ["classify_log", "predict_log", "regress_log", "predict_log", "predict_log"]
    assert kinds == one * 2
    names = [getattr(log, kind).request.model_spec for log, kind in zip(logs, kinds)]  # noqa: B905
    assert [spec.signature_name for spec in names] == [*KINDS] * 2
    assert {spec.name for spec in names} == {"a model"}


def _logs() -> list[bytes]:
    return warmup.logs("a model", KINDS, EXAMPLES, COLUMNS)


def test_tensors_come_back(prediction_log):
    inputs = prediction_log.FromString(_logs()[6]).predict_log.request.inputs
    values = {name: tf.make_ndarray(proto) for name, proto in inputs.items()}
    assert values["n"].tolist() == [3, -1, 2**40]
    assert values["s"].tolist() == [b"x", b"\xff", b"y" * 300]
    np.testing.assert_array_equal(values["größe (cm)"], np.float32([1.5] * 3))


def test_examples_come_back(prediction_log):
    logs = [prediction_log.FromString(x) for x in _logs()]
    for found in (logs[5].classify_log, logs[7].regress_log):
        listed = found.request.input.example_list.examples
        assert [e.features.feature["n"].int64_list.value[0] for e in listed] == [
            3,
            -1,
            2**40,
        ]
    serialized = logs[8].predict_log.request.inputs["examples"]
    assert tf.make_ndarray(serialized).tolist() == EXAMPLES


def test_the_bytes_are_those_of_the_wire_format():
    """By hand, for environments without the package."""
    log = warmup.examples_log("regress", "m", "r", [b"\x0a\x00"])
    assert log == bytes.fromhex("1a 12 0a 10 0a 06 0a 01 6d 1a 01 72") + bytes.fromhex(
        "12 06 0a 04 0a 02 0a 00"
    )


def test_the_file_is_a_tfrecord(tmp_path):
    warmup.write(str(tmp_path), _logs())
    path = os.path.join(tmp_path, "tf_serving_warmup_requests")
    assert list(tf.data.TFRecordDataset(path).as_numpy_iterator()) == _logs()


def test_no_more_are_written_than_a_server_takes():
    kinds = {str(i): "examples" for i in range(501)}
    found = warmup.logs("m", kinds, EXAMPLES, COLUMNS)
    assert len(found) == 1000
    assert found[:501] == warmup.logs("m", kinds, EXAMPLES[:1], COLUMNS)[:501]
