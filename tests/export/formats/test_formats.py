"""LiteRT and ONNX models answer as the SavedModel does, or are refused with a reason."""

from __future__ import annotations

import importlib.util
import json
import os
import re

import helpers_jobs
import numpy as np
import pytest

from export import requests, versions
from export.formats import compare, litert, network, onnx_format, writer
from pipeline import estimators, export_model
from pipeline.compat import tf
from pipeline.flags.exporting import FORMATS, ExportFlags
from pipeline.types import ExitCode, UserError

MODEL = "keras_wide_deep"
NEEDED = {m for f in writer.FORMATS.values() for m in f.modules}
installed = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)),
    reason=f"needs {', '.join(sorted(NEEDED))}",
)


def _network(job, model: str = MODEL) -> network.Network:
    trained = job.model(model)
    return network.extract(
        estimators.make_estimator(trained),
        estimators.latest_checkpoint(trained)[0],
        trained.declaration,
    )


@pytest.fixture(scope="module")
def of_small_job(small_job) -> network.Network:
    return _network(small_job)


@pytest.fixture(scope="module")
def answers(small_job):
    """Features and predictions of the SavedModel on real rows."""
    directory = versions.find(str(small_job.export_dir(MODEL)), None)
    columns = small_job.model(MODEL).declaration.input_columns
    part = estimators.to_records(small_job.dataset().shards("test"))
    return writer._answers(directory, requests.first_rows(part, columns, 60))


def test_the_flag_and_the_writer_know_the_same_formats():
    assert set(FORMATS) == set(writer.FORMATS)


def test_the_network_begins_behind_the_features(of_small_job, small_job):
    specs = of_small_job.specs
    assert set(specs) == set(small_job.model(MODEL).declaration.features)
    assert {s.dtype for s in specs.values()} == {tf.int64, tf.float32}
    assert set(of_small_job.outputs) == {"logistic", "logits", "probabilities"}
    kinds = {node.op for node in of_small_job.graph_def.node}
    assert not kinds & {"HashTableV2", "LookupTableFindV2", "ReadVariableOp"}


def test_the_network_is_the_model(of_small_job, answers):
    features, wanted = answers
    found = of_small_job.function()(*[features[f] for f in of_small_job.inputs])
    for name in of_small_job.outputs:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)


def test_names_of_inputs_fit_every_format():
    names = network.input_names(["age", "größe (cm)", "gr__e__cm_", "0", "a.b"])
    assert len(set(names.values())) == 5 and names["age"] == "age"
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) for name in names.values())


def test_a_premade_model_is_refused_with_the_reason(small_job):
    with pytest.raises(UserError, match="--formats: this model reads feature columns"):
        _network(small_job, "wide_deep")


@installed
@pytest.mark.parametrize("task", ["multi_class", "regression"])
def test_other_kinds_of_label_agree(task_jobs, task, tmp_path):
    job = task_jobs[task]
    result = _export(job, tmp_path, "litert", "onnx")
    for found in result.manifest.results["formats"].values():
        for of_runtime in found["runtimes"].values():
            assert of_runtime["largest_difference"] <= 1e-5


def _export(job, directory, *formats: str) -> export_model.ExportResult:
    return export_model.run(
        str(directory / "export"),
        job.model(MODEL),
        job.dataset(),
        helpers_jobs.serving_flags(),
        helpers_jobs.QUIET,
        ExportFlags(formats=formats),
    )


@installed
def test_an_export_holds_the_formats_and_what_was_found(small_job, tmp_path):
    result = _export(small_job, tmp_path, *FORMATS)
    extra = os.path.join(result.directory, "assets.extra")
    found = result.manifest.results["formats"]
    assert set(found) == set(FORMATS)
    for name, of_format in found.items():
        assert (
            os.path.getsize(os.path.join(extra, of_format["file"]))
            == (of_format["bytes"])
        )
        assert of_format["rows"] == small_job.dataset().shards("test").rows
        for of_runtime in of_format["runtimes"].values():
            assert of_runtime["largest_difference"] <= of_format["tolerance"], name
            assert of_runtime["latency_ms"]["1"] > 0
            assert of_runtime["latency_ms"]["1000"] > 0
    assert "onnxruntime" in found["onnx"]["runtimes"]
    with open(os.path.join(extra, "formats.json"), encoding="utf-8") as f:
        inputs = json.load(f)["inputs"]
    assert {
        "input": "city",
        "feature": "city",
        "type": "int64",
        "shape": ["batch"],
    } in (inputs)


@installed
@pytest.mark.parametrize("size", [0, 1, 3, 1000])
@pytest.mark.parametrize("kind", ["litert", "onnxruntime", "openvino"])
def test_batches_of_any_size(of_small_job, answers, kind, size):
    if kind == "litert":
        if size == 0:
            pytest.skip("LiteRT has no tensors without rows")
        run = litert.Runner(litert.convert(of_small_job, None), of_small_job)
    else:
        content = onnx_format.convert(of_small_job)
        if kind == "openvino":
            pytest.importorskip("openvino")
            run = onnx_format.OpenVino(content, of_small_job)
        else:
            run = onnx_format.OnnxRuntime(content, of_small_job)
    features, wanted = answers
    found = run(compare.take(features, size))
    wanted = {name: wanted[name] for name in of_small_job.outputs}
    assert compare.difference(found, compare.take(wanted, size)).largest <= 1e-5


def test_a_missing_package_is_named(monkeypatch, small_job):
    declaration = small_job.model(MODEL).declaration
    monkeypatch.setattr(writer.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        writer.check(["onnx"], declaration)
    assert str(caught.value) == (
        "--formats=onnx needs the package tf2onnx, which is not installed: pip install"
        " 'estimator-pipeline[onnx]'"
    )


@installed
def test_a_format_that_differs_is_refused(small_job, tmp_path, monkeypatch):
    convert = onnx_format.convert

    def wrong(of_model):
        graph = type(of_model.graph_def).FromString(
            of_model.graph_def.SerializeToString()
        )
        for node in graph.node:
            if node.op == "Const" and node.attr["dtype"].type == 1:
                value = tf.make_ndarray(node.attr["value"].tensor)
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value * 1.5))
        return convert(network.dataclasses.replace(of_model, graph_def=graph))

    monkeypatch.setattr(onnx_format, "convert", wrong)
    with pytest.raises(
        UserError, match="of format onnx in onnxruntime differs"
    ) as caught:
        _export(small_job, tmp_path, "onnx")
    assert caught.value.exit_code is ExitCode.VERIFY_FAILED
    assert versions.versions(str(tmp_path / "export")) == []


@pytest.mark.parametrize(
    ("found", "largest"),
    [
        ([[0.5], [1000.0]], 0.0),
        ([[0.75], [1000.0]], 0.25),
        ([[0.5], [1001.0]], 1e-3),
        ([[np.nan], [1000.0]], np.inf),
        ([[0.5]], np.inf),
    ],
)
def test_differences(found, largest):
    wanted = {"a": np.array([[0.5], [1000.0]])}
    assert compare.difference({"a": np.array(found)}, wanted).largest == (
        pytest.approx(largest)
    )
    assert compare.difference({}, wanted).largest == np.inf
