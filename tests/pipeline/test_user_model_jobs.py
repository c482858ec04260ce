"""Models of the user's own through all stages."""

from __future__ import annotations

import json
import sys

import helpers_jobs
import pytest

from pipeline import estimators, evaluate, predict
from pipeline.compat import tf
from pipeline.preprocess.sources import registry as sources
from pipeline.types import UserError

_CODE = '''
import tensorflow as tf


class Numbers(tf.keras.layers.Layer):
    def call(self, raw):
        age = tf.cast(raw["age"], tf.float32) / 60
        return tf.stack([age, raw["score"]], axis=1)


def compiled(params):
    model = tf.keras.Sequential(
        [
            Numbers(),
            tf.keras.layers.Dense(params["width"], "relu"),
            tf.keras.layers.Dense(1, "sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy", "AUC"])
    return model


def model_fn(features, labels, mode):
    v1 = tf.compat.v1
    net = Numbers()(features)
    logits = v1.layers.dense(net, 1)
    rich = tf.sigmoid(logits[:, 0])
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": tf.estimator.export.PredictOutput({"p": rich}),
            "own": tf.estimator.export.PredictOutput({"twice": 2 * rich}),
        }
        return tf.estimator.EstimatorSpec(
            mode, predictions=rich, export_outputs=outputs
        )
    loss = v1.losses.log_loss(labels, rich)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = v1.train.AdamOptimizer().minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def strict(features, labels, mode):
    """Takes short texts only."""
    lengths = tf.strings.length(features["city"])
    check = tf.compat.v1.debugging.assert_less(lengths, 20, name="city_is_short")
    with tf.control_dependencies([check]):
        age = tf.identity(features["age"])
    return model_fn({**features, "age": age}, labels, mode)


def taken(features, labels, mode):
    """Has an export of its own where the pipeline has one."""
    spec = model_fn(features, labels, mode)
    if mode == tf.estimator.ModeKeys.PREDICT:
        spec.export_outputs["transform"] = spec.export_outputs["own"]
    return spec
'''


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "users_own.py").write_text(_CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield helpers_jobs.make_job(tmp_path / "job", "binary")
    sys.modules.pop("users_own", None)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["compiled", "model_fn"])
def test_all_stages(job, tmp_path, monkeypatch, function):
    name = f"users_own:{function}"
    model = helpers_jobs.train_model(job, name, hparams="width=4", max_steps=6)
    assert model.training.hparams == {"width": 4}
    metrics = evaluate.run(
        str(tmp_path / "evaluation"), model, job.dataset(), "test", helpers_jobs.QUIET
    ).results["metrics"]
    assert metrics["global_step"] == 6
    assert ("auc" in metrics) == (function == "compiled")
    exported = helpers_jobs.export(job, name)
    verification = exported.manifest.results["verification"]
    assert verification["largest_difference"] < 1e-6
    signatures = tf.saved_model.load(exported.directory).signatures
    wanted = {"serving_default", "predict", "transform"} | (
        {"own"} if function == "model_fn" else set()
    )
    assert signatures.keys() == wanted

    output = tmp_path / "out.jsonl"
    flags = helpers_jobs.data_flags(job.input, tmp_path / "unused")
    predict.run(
        sources.open_inputs(flags), exported.directory, str(output), helpers_jobs.QUIET
    )
    first = json.loads(output.read_text(encoding="utf-8").splitlines()[0])
    value = first["predictions"]
    assert 0 < (value[0] if function == "compiled" else value) < 1

    with pytest.raises(UserError, match="raw columns in code of its own"):
        helpers_jobs.export(job, name, formats=("litert",))

    # Without its code a model cannot be built anew, and one line says so.
    sys.modules.pop("users_own")
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(tmp_path)])
    with pytest.raises(UserError, match="there is no module users_own"):
        estimators.make_estimator(job.model(name))


@pytest.mark.slow
def test_a_model_that_refuses_unknown_texts_is_verified_on_real_rows(job):
    name = "users_own:strict"
    helpers_jobs.train_model(job, name, hparams="", max_steps=2)
    exported = helpers_jobs.export(job, name)
    verification = exported.manifest.results["verification"]
    assert verification["rows"] == job.dataset().shards("test").rows
    serve = tf.saved_model.load(exported.directory).signatures["predict"]
    specs = serve.structured_input_signature[1]
    row = {n: tf.zeros([1], s.dtype) for n, s in specs.items() if s.dtype != tf.string}
    row |= {n: tf.constant(["x"]) for n, s in specs.items() if s.dtype == tf.string}
    assert serve(**row)["predictions"].shape == (1,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="city_is_short"):
        serve(**{**row, "city": tf.constant(["x" * 20])})


def test_a_name_that_is_taken_is_one_line(job):
    name = "users_own:taken"
    helpers_jobs.train_model(job, name, hparams="", max_steps=2)
    with pytest.raises(UserError, match="exports under the key transform"):
        helpers_jobs.export(job, name)
