"""What stands beside an exported model is of that model, and usable as it is."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import helpers_jobs
import numpy as np
import pytest
from helpers_stage import data_flags

from export import versions
from pipeline import declaration as declarations
from pipeline import evaluate, export_model, model_card, predict
from pipeline.compat import tf
from pipeline.flags.exporting import ExportFlags
from pipeline.preprocess import constants_files
from pipeline.preprocess.sources import registry
from pipeline.types import UserError

MODEL = "keras_wide_deep"


@pytest.fixture(scope="module")
def version(small_job) -> Path:
    return Path(versions.find(str(small_job.export_dir(MODEL)), None))


@pytest.fixture(scope="module")
def extra(version) -> Path:
    return version / "assets.extra"


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


def _sample(extra: Path, name: str) -> dict:
    return json.loads((extra / "sample_requests" / f"{name}.json").read_text("utf-8"))


def test_everything_is_there(extra):
    assert sorted(os.listdir(extra)) == [
        "constants.json",
        "features.yaml",
        "flags.txt",
        "model_card.json",
        "model_card.md",
        "sample_requests",
        "schema.pbtxt",
        "tf_serving_warmup_requests",
        "vocabularies",
    ]
    assert sorted(os.listdir(extra / "sample_requests")) == [
        "classify.json",
        "examples.tfrecord",
        "predict.json",
        "regress.json",
        "serving_default.json",
        "transform.json",
    ]


def test_declaration_and_constants_are_the_models(extra, small_job):
    model = small_job.model(MODEL)
    assert declarations.load(str(extra / "features.yaml")) == model.declaration
    assert constants_files.read_constants(str(extra)) == model.constants


def test_samples_are_real_rows_and_agree(extra, signatures, small_job):
    examples = list(
        tf.data.TFRecordDataset(
            str(extra / "sample_requests" / "examples.tfrecord")
        ).as_numpy_iterator()
    )
    assert len(examples) == 8
    names = {c.name for c in small_job.model(MODEL).declaration.input_columns}
    for example in examples:
        assert set(tf.train.Example.FromString(example).features.feature) <= names
    expected = signatures["serving_default"](examples=tf.constant(examples[:2]))
    body = _sample(extra, "predict")
    assert body["signature_name"] == "predict"
    columns = {
        name: tf.constant([row[name] for row in body["instances"]], spec.dtype)
        for name, spec in signatures["predict"].structured_input_signature[1].items()
    }
    found = signatures["predict"](**columns)
    np.testing.assert_allclose(found["logits"], expected["logits"], atol=1e-6)
    encoded = _sample(extra, "serving_default")["instances"]
    assert [base64.b64decode(e["examples"]["b64"]) for e in encoded] == examples[:2]
    for name in ("classify", "regress"):
        for row, example in zip(
            _sample(extra, name)["examples"], examples[:2], strict=True
        ):
            assert set(row) == set(
                tf.train.Example.FromString(example).features.feature
            )


def test_there_is_a_warm_up_request_for_every_signature(extra, signatures):
    path = str(extra / "tf_serving_warmup_requests")
    logs = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    assert len(logs) == 2 * len(signatures)
    for name in signatures:
        assert sum(name.encode() in log for log in logs) >= 2


def test_the_card_says_what_the_model_is(extra, small_job):
    card = json.loads((extra / "model_card.json").read_text("utf-8"))
    dataset = small_job.dataset()
    assert (card["model"], card["global_step"]) == (MODEL, 4)
    assert card["data"]["rows"] == dataset.manifest.results["rows_written"]
    assert card["data"]["files"][0]["path"] == small_job.input.name
    assert card["metrics"] is None
    assert card["versions"]["tensorflow"] == tf.__version__
    page = (extra / "model_card.md").read_text("utf-8")
    assert page.startswith(f"# {MODEL}, step 4\n")
    assert "had not seen this checkpoint" in page
    assert helpers_jobs.COLOUR in page
    assert f"| train | {card['data']['rows']['train']} |" in page


def test_the_card_has_the_metrics_of_this_checkpoint_only(small_job, tmp_path):
    model, dataset = small_job.model(MODEL), small_job.dataset()
    evaluated = evaluate.run(
        str(tmp_path / "e"), model, dataset, "eval", helpers_jobs.QUIET
    )
    digest = evaluated.inputs["checkpoint"]
    arguments = (4, ("predict",), str(tmp_path / "e"))
    card = model_card.make(model, dataset, digest, *arguments)
    assert card["metrics"]["values"] == evaluated.results["metrics"]
    assert "rows of the eval split" in model_card.to_markdown(card)
    other = model_card.make(model, dataset, "another", *arguments)
    assert other["metrics"] is None


# --- columns that are passed through -----------------------------------------------


def _export(job, directory, *forward: str):
    return export_model.run(
        str(directory),
        job.model(MODEL),
        job.dataset(),
        helpers_jobs.serving_flags(),
        helpers_jobs.QUIET,
        ExportFlags(forward_features=forward),
    )


def test_keys_and_features_are_passed_through(small_job, tmp_path):
    """`id` is no feature; `score` is one, with a default."""
    result = _export(small_job, tmp_path / "export", "id", "score")
    assert result.manifest.results["verification"]["largest_difference"] <= 1e-5
    signatures = tf.saved_model.load(result.directory).signatures
    body = _sample(Path(result.directory, "assets.extra"), "predict")
    columns = {
        name: tf.constant([row[name] for row in body["instances"]], spec.dtype)
        for name, spec in signatures["predict"].structured_input_signature[1].items()
    }
    columns["id"] = tf.constant([2**62, -5], tf.int64)
    columns["score"] = tf.constant([float("nan"), 0.25])
    found = signatures["predict"](**columns)
    assert found["id"].numpy().tolist() == [2**62, -5]
    assert found["score"].numpy().tolist() == [0.5, 0.25]
    empty = signatures["serving_default"](examples=tf.constant([], tf.string))
    assert empty["id"].shape == (0,)


def test_predict_repeats_what_is_forwarded(small_job, tmp_path):
    result = _export(small_job, tmp_path / "export", "id", "city")
    sources = registry.open_inputs(data_flags(str(small_job.input)))
    output = tmp_path / "out.jsonl"
    predict.run(sources, result.directory, str(output), helpers_jobs.QUIET)
    found = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    names = helpers_jobs.HEADER.index("id"), helpers_jobs.HEADER.index("city")
    assert [row["forwarded"] for row in found] == [
        {"id": row[names[0]], "city": row[names[1]]} for row in helpers_jobs.rows()
    ]
    assert all(row["class"] in ("ja", "nein") for row in found)


def test_a_key_that_is_not_declared_is_refused(small_job, tmp_path):
    with pytest.raises(UserError, match="declares no column ident; there are id, "):
        _export(small_job, tmp_path / "export", "ident")
