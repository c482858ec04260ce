"""The signature of embeddings: what the last layer of a model reads."""

from __future__ import annotations

import itertools

import helpers_jobs
import numpy as np
import pytest

from export import saved_model
from input_fns import records
from model_fns import embeddings, registry
from pipeline import estimators, export_model
from pipeline.compat import estimator, tf
from pipeline.flags.exporting import ExportFlags
from pipeline.types import UserError


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Models of three classes with a hidden layer of 5, one in each."""
    job = helpers_jobs.make_job(tmp_path_factory.mktemp("job"), "multi_class")
    for model in ("dnn", "deepfm"):
        helpers_jobs.train_model(job, model, hparams="hidden_units=[7,5]", max_steps=2)
    return job


def _loaded(job, model: str, directory) -> dict:
    trained = job.model(model)
    saved_model.write(
        estimators.make_estimator(trained),
        estimators.latest_checkpoint(trained)[0],
        trained.declaration.input_columns,
        str(directory),
        (trained.declaration.columns["city"],),
        with_embeddings=True,
    )
    return dict(tf.saved_model.load(str(directory)).signatures)


def _examples(job, model: str, rows: int) -> list[bytes]:
    part = estimators.to_records(job.dataset().shards("test"))
    columns = job.model(model).declaration.input_columns
    return list(itertools.islice(records.serialized_rows(part, columns), rows))


@pytest.mark.parametrize("model", ["dnn", "deepfm"])
@pytest.mark.parametrize("rows", [0, 1, 20])
def test_a_row_has_one_vector(job, model, rows, tmp_path):
    signatures = _loaded(job, model, tmp_path / "version")
    examples = _examples(job, model, rows)
    found = signatures["embeddings"](examples=tf.constant(examples, tf.string))
    assert set(found) == {"embedding", "city"}
    assert found["embedding"].shape == (rows, 5)
    assert found["embedding"].dtype == tf.float32
    assert found["city"].shape == (rows,)
    if rows > 1:
        assert np.unique(found["embedding"].numpy(), axis=0).shape[0] > 1


def test_the_vector_is_what_the_logits_are_computed_from(job, tmp_path):
    signatures = _loaded(job, "dnn", tmp_path / "version")
    examples = tf.constant(_examples(job, "dnn", 30), tf.string)
    vectors = signatures["embeddings"](examples=examples)["embedding"].numpy()
    checkpoint = estimators.latest_checkpoint(job.model("dnn"))[0]
    kernel, bias = (
        tf.train.load_variable(checkpoint, f"dnn/logits/{n}")
        for n in ("kernel", "bias")
    )
    logits = signatures["serving_default"](examples=examples)["logits"].numpy()
    np.testing.assert_allclose(vectors @ kernel + bias, logits, atol=1e-5)


def test_a_model_of_ones_own_keeps_what_it_likes(tmp_path):
    def model_fn(features, labels, mode):
        hidden = tf.stack([features["x"], 2 * features["x"]], axis=1)
        embeddings.keep(hidden)
        weight = tf.compat.v1.get_variable("w", [2, 1])
        return estimator.EstimatorSpec(mode, predictions={"y": hidden @ weight})

    trained = estimator.Estimator(model_fn, str(tmp_path))
    with tf.Graph().as_default() as graph:
        features = {"x": tf.constant([1.0, 2.0])}
        trained.model_fn(features, None, estimator.ModeKeys.PREDICT, trained.config)
        assert embeddings.kept(graph).shape == (2, 2)


def test_without_a_hidden_layer_it_is_refused(job, tmp_path):
    helpers_jobs.train_model(job, "linear", hparams="", max_steps=2)
    with pytest.raises(UserError, match="has no hidden layer") as caught:
        _loaded(job, "linear", tmp_path / "version")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "flag, exporting",
    [
        ("formats", ExportFlags(formats=("onnx",))),
        ("export_embeddings", ExportFlags(embeddings=True)),
    ],
)
def test_what_a_registered_model_lacks_is_known_at_once(
    job, tmp_path, flag, exporting, monkeypatch
):
    helpers_jobs.train_model(job, "linear", hparams="", max_steps=2)
    monkeypatch.setattr(export_model, "_export", None)
    with pytest.raises(UserError, match=f"^--{flag}: --model=linear") as caught:
        export_model.run(
            str(tmp_path),
            job.model("linear"),
            job.dataset(),
            helpers_jobs.serving_flags(),
            helpers_jobs.QUIET,
            exporting,
        )
    assert "\n" not in str(caught.value)


def test_models_from_layers_lack_nothing():
    for name in ("keras_wide_deep", "dcn", "deepfm"):
        registry.check_export(registry.find(name), ("onnx",), True)
    registry.check_export(registry.find("dnn"), (), True)
