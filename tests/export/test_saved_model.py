"""Every export has the same signatures, whatever the model and the batch."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import helpers_jobs
import numpy as np
import pytest

from export import saved_model
from input_fns import records
from pipeline import estimators
from pipeline.compat import tf

_CLASSES = {"binary": [b"nein", b"ja"], "multi_class": [b"1", b"2", b"3"]}
_OUTPUTS = {
    "binary": {
        "logits": (tf.float32, 1),
        "logistic": (tf.float32, 1),
        "probabilities": (tf.float32, 2),
        "class_ids": (tf.int64, 1),
        "classes": (tf.string, 1),
        "all_class_ids": (tf.int32, 2),
        "all_classes": (tf.string, 2),
    },
    "multi_class": {
        "logits": (tf.float32, 3),
        "probabilities": (tf.float32, 3),
        "class_ids": (tf.int64, 1),
        "classes": (tf.string, 1),
        "all_class_ids": (tf.int32, 3),
        "all_classes": (tf.string, 3),
    },
    "regression": {"predictions": (tf.float32, 1)},
}
_INPUTS = {
    helpers_jobs.COLOUR: tf.string,
    "age": tf.int64,
    "score": tf.float32,
    "city": tf.string,
    "kind": tf.int64,
    "tag": tf.string,
}
_OTHERS = {
    "binary": ["classify", "regress"],
    "multi_class": ["classify"],
    "regression": ["regress"],
}
_CASES = [(t, m) for t in helpers_jobs.TASKS for m in helpers_jobs.MODELS]


@dataclasses.dataclass(frozen=True)
class Exported:
    """A loaded export.

    Attributes:
      task: What it predicts.
      names: The signatures, as `saved_model.write` returned them.
      signatures: Signature name to function.
      examples: Some serialized rows.
    """

    task: str
    names: list[str]
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction]
    examples: list[bytes]


@pytest.fixture(scope="module", params=_CASES, ids="-".join)
def exported(request, task_jobs, tmp_path_factory) -> Exported:
    task, name = request.param
    model = task_jobs[task].model(name)
    directory = str(tmp_path_factory.mktemp("export") / "1")
    names = saved_model.write(
        estimators.make_estimator(model),
        estimators.latest_checkpoint(model)[0],
        model.declaration.input_columns,
        directory,
    )
    loaded = tf.saved_model.load(directory)
    shards = task_jobs[task].dataset().shards("test")
    rows = records.serialized_rows(
        estimators.to_records(shards), model.declaration.input_columns
    )
    examples = list(itertools.islice(rows, 3))
    return Exported(task, names, dict(loaded.signatures), examples)


def _spec(function) -> dict[str, tuple]:
    inputs = function.structured_input_signature[1]
    return {name: (spec.dtype, spec.shape.as_list()) for name, spec in inputs.items()}


def _outputs(function) -> dict[str, tuple]:
    outputs = function.structured_outputs
    return {name: (o.dtype, o.shape.as_list()) for name, o in outputs.items()}


def test_the_set_of_signatures_is_fixed(exported):
    expected = sorted(["predict", "serving_default", *_OTHERS[exported.task]])
    assert exported.names == expected
    assert sorted(exported.signatures) == expected


def test_inputs_have_an_open_batch(exported):
    examples = {"examples": (tf.string, [None])}
    assert _spec(exported.signatures["serving_default"]) == examples
    assert _spec(exported.signatures["predict"]) == {
        name: (dtype, [None]) for name, dtype in _INPUTS.items()
    }


@pytest.mark.parametrize("name", ["serving_default", "predict"])
def test_outputs_are_those_of_the_task(exported, name):
    assert _outputs(exported.signatures[name]) == {
        name: (dtype, [None, width])
        for name, (dtype, width) in _OUTPUTS[exported.task].items()
    }


def test_classify_and_regress_are_those_of_tensorflow_serving(exported):
    for name in _OTHERS[exported.task]:
        function = exported.signatures[name]
        assert _spec(function) == {"inputs": (tf.string, [None])}
        outputs = {n: dtype for n, (dtype, _) in _outputs(function).items()}
        assert (
            outputs
            == {
                "classify": {"scores": tf.float32, "classes": tf.string},
                "regress": {"outputs": tf.float32},
            }[name]
        )


def _raw(rows: int) -> dict[str, tf.Tensor]:
    values = {
        helpers_jobs.COLOUR: ["rot", "?", "lila"],
        "age": [-1, 35, 2**40],
        "score": [0.25, float("nan"), -7.5],
        "city": ["Köln", "Paris", "\x00\xff"],
        "kind": [1, -1, 2**62],
        "tag": ["", "t1", " new "],
    }
    return {n: tf.constant(v[:rows], _INPUTS[n]) for n, v in values.items()}


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_every_output_has_one_entry_a_row(exported, rows):
    for name, function in exported.signatures.items():
        if name == "predict":
            found = function(**_raw(rows))
        else:
            (argument,) = function.structured_input_signature[1]
            found = function(
                **{argument: tf.constant(exported.examples[:rows], tf.string)}
            )
        for output, value in found.items():
            assert value.shape[0] == rows, f"{output} of {name}"
            if value.dtype.is_floating:
                assert np.isfinite(value).all(), f"{output} of {name}"


def test_a_row_has_the_same_answer_in_any_batch(exported):
    function = exported.signatures["serving_default"]
    together = function(examples=tf.constant(exported.examples))
    for i, example in enumerate(exported.examples):
        alone = function(examples=tf.constant([example]))
        for name, value in alone.items():
            if value.dtype.is_floating:
                np.testing.assert_allclose(value[0], together[name][i], atol=1e-6)
            else:
                assert value[0].numpy().tolist() == together[name][i].numpy().tolist()


def test_classes_are_the_labels_of_the_user(exported):
    if exported.task not in _CLASSES:
        pytest.skip("a regression has no classes")
    classes = _CLASSES[exported.task]
    found = exported.signatures["predict"](**_raw(3))
    assert found["all_classes"].numpy().tolist() == [classes] * 3
    probabilities = found["probabilities"].numpy()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    best = probabilities.argmax(axis=1)
    assert found["class_ids"].numpy()[:, 0].tolist() == best.tolist()
    assert found["classes"].numpy()[:, 0].tolist() == [classes[i] for i in best]


def test_classify_and_regress_agree_with_the_predictions(exported):
    examples = tf.constant(exported.examples)
    predictions = exported.signatures["serving_default"](examples=examples)
    if "classify" in exported.signatures:
        found = exported.signatures["classify"](inputs=examples)
        np.testing.assert_array_equal(found["scores"], predictions["probabilities"])
        np.testing.assert_array_equal(found["classes"], predictions["all_classes"])
    if "regress" in exported.signatures:
        found = exported.signatures["regress"](inputs=examples)["outputs"]
        name = "logistic" if exported.task == "binary" else "predictions"
        np.testing.assert_array_equal(found, predictions[name])
