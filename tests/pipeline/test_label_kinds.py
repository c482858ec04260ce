"""Labels of every kind, from a CSV file to predictions of an exported version."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import helpers_jobs
import pytest

from pipeline import evaluate, export_model, model_card, predict
from pipeline.compat import tf
from pipeline.export_model import ExportResult
from pipeline.flags.exporting import ExportFlags
from pipeline.preprocess import stage
from pipeline.preprocess.sources import registry as sources

pytestmark = pytest.mark.slow

_ROWS = 240
_HEADER = ("size", "shape", "tags", "bought", "visits", "price", "share")
_DECLARATION = """
{label}
split: {{fractions: {{train: 0.6, eval: 0.2, test: 0.2}}, key: []}}
columns:
  size: {{type: float}}
  shape: {{type: string}}
  tags: {{type: string, default: "|"}}
  bought: {{type: string}}
  visits: {{type: int}}
  price: {{type: float}}
  share: {{type: float}}
features:
  size: {{kind: numeric, use: both}}
  shape: {{kind: vocabulary, embedding: 2}}
"""
_TAGS = 'column: tags, classes: [big, round, "very big"], separator: "|"'
_LABELS = {
    "several classes": f"label: {{{_TAGS}}}",
    "poisson": "label: {column: visits, distribution: poisson}",
    "lognormal": "label: {column: price, distribution: lognormal}",
    "logistic": "label: {column: share, distribution: logistic}",
    "several labels": "labels:\n"
    "  bought: {column: bought, classes: [no, 'yes'], weight: 2}\n"
    f"  tags: {{{_TAGS}}}\n"
    "  visits: {column: visits, distribution: poisson, weight: 0.5}",
}
_OTHER_SIGNATURES = {
    "several classes": {"classify"},
    "poisson": {"regress"},
    "lognormal": {"regress"},
    "logistic": {"regress"},
    "several labels": {
        *("classify", "bought/classify", "bought/regress"),
        *("bought/predict", "tags/classify", "tags/predict"),
        *("visits/regress", "visits/predict"),
    },
}


def _rows() -> list[list]:
    draw = random.Random(3)
    found = []
    for _ in range(_ROWS):
        size, shape = draw.uniform(0, 4), draw.choice(["ball", "box"])
        tags = [t for t, low in (("big", 2), ("very big", 3)) if size > low]
        tags += ["round"] if shape == "ball" else []
        found.append(
            [
                f"{size:.4f}",
                shape,
                "|".join(tags),
                "yes" if size > 2 else "no",
                round(size * 2),
                f"{2.718 ** (size - 1):.4f}",
                f"{size / 4:.4f}",
            ]
        )
    return found


_CASES = [(kind, "keras_wide_deep") for kind in _LABELS]
_CASES += [(kind, "wide_deep") for kind in ("several classes", "several labels")]


@dataclasses.dataclass(frozen=True)
class Trained:
    """A job whose model was trained and exported."""

    kind: str
    model: str
    job: helpers_jobs.Job
    exported: ExportResult


@pytest.fixture(scope="module", params=_CASES, ids="-".join)
def trained(request, tmp_path_factory) -> Trained:
    kind, model = request.param
    root: Path = tmp_path_factory.mktemp("job")
    job = helpers_jobs.Job(
        root, helpers_jobs.write_csv(root / "rows.csv", _HEADER, _rows())
    )
    features = root / "features.yaml"
    text = _DECLARATION.format(label=_LABELS[kind])
    features.write_text(text, encoding="utf-8")
    stage.run(
        str(job.dataset_dir),
        stage.plan(helpers_jobs.data_flags(job.input, features)),
        helpers_jobs.QUIET,
    )
    helpers_jobs.train_model(
        job,
        model,
        hparams="hidden_units=[16],learning_rate=0.02,dropout=0",
        max_steps=150,
    )
    return Trained(kind, model, job, helpers_jobs.export(job, model))


def test_metrics(trained):
    kind, job = trained.kind, trained.job
    manifest = evaluate.run(
        str(job.root / "evaluation"),
        job.model(trained.model),
        job.dataset(),
        "test",
        helpers_jobs.QUIET,
    )
    metrics = manifest.results["metrics"]
    if kind == "several labels":
        assert metrics["accuracy/bought"] > 0.85
        assert metrics["auc/tags"] > 0.9
        parts = [metrics[f"loss/{n}"] for n in ("bought", "tags", "visits")]
        weighted = 2 * parts[0] + parts[1] + 0.5 * parts[2]
        assert metrics["loss"] == pytest.approx(weighted, rel=1e-5)
    elif kind == "several classes":
        assert metrics["auc"] > 0.9
    else:
        assert metrics["prediction/mean"] == pytest.approx(
            metrics["label/mean"], rel=0.15
        )


def test_signatures(trained):
    kind, exported = trained.kind, trained.exported
    assert exported.manifest.results["verification"]["largest_difference"] < 1e-6
    model = tf.saved_model.load(exported.directory)
    wanted = {"serving_default", "predict", "transform", *_OTHER_SIGNATURES[kind]}
    assert model.signatures.keys() == wanted
    columns = {"size": tf.constant([3.9, 0.1]), "shape": tf.constant(["ball", "box"])}
    answers = model.signatures["predict"](**columns)
    if kind == "several classes":
        assert (
            answers["classes"].numpy().tolist() == [[b"big", b"round", b"very big"]] * 2
        )
    if kind == "several labels":
        assert answers["bought/classes"].numpy().tolist() == [[b"yes"], [b"no"]]


def test_the_server_answers_the_sample_requests_of_all_signatures(trained):
    pytest.importorskip("starlette")
    from pipeline.serving import app, store

    directory = Path(trained.exported.directory)
    version = store.load(str(directory.parent), int(directory.name))
    samples = directory / "assets.extra" / "sample_requests"
    found = {}
    for path in samples.glob("*.json"):
        body = path.read_bytes()
        name = json.loads(body)["signature_name"]
        kind = version.kinds[name]
        method = kind if kind in ("classify", "regress") else "predict"
        found[name] = app.answer(version, method, body)
    assert found.keys() == version.signatures.keys()
    for name, answer in found.items():
        rows = answer["results" if "results" in answer else "predictions"]
        assert len(rows) == 2, name
    if trained.kind == "several classes":
        first = found["classify"]["results"][0]
        assert [label for label, _ in first] == ["big", "round", "very big"]
        assert all(0 < score < 1 for _, score in first)
    if trained.kind == "several labels":
        # The plain name answers for the first label.
        assert found["classify"] == found["bought/classify"]
        assert found["visits/regress"]["results"] == [
            pytest.approx(row["visits/predictions"][0], rel=1e-5)
            for row in found["predict"]["predictions"]
        ]


def test_the_card_lists_the_signatures(trained):
    extra = Path(trained.exported.directory, "assets.extra")
    card = json.loads((extra / model_card.JSON_FILE).read_text("utf-8"))
    assert card["signatures"] == trained.exported.manifest.results["signatures"]
    page = (extra / model_card.MARKDOWN_FILE).read_text("utf-8")
    assert ", ".join(card["signatures"]) in page


def test_formats_answer_alike(trained, tmp_path):
    if trained.model != "keras_wide_deep":
        pytest.skip("has no formats")
    for package in ("ai_edge_litert", "tf2onnx", "onnxruntime"):
        pytest.importorskip(package)
    result = export_model.run(
        str(tmp_path),
        trained.job.model(trained.model),
        trained.job.dataset(),
        helpers_jobs.serving_flags(),
        helpers_jobs.QUIET,
        ExportFlags(formats=("litert", "onnx")),
    )
    found = result.manifest.results["formats"]
    assert found.keys() == {"litert", "onnx"}
    for of_format in found.values():
        for of_runtime in of_format["runtimes"].values():
            assert of_runtime["largest_difference"] <= 1e-5


def _predicted(job, exported) -> list[dict]:
    output = job.root / "predictions.jsonl"
    path = helpers_jobs.write_csv(
        job.root / "new.csv", ("size", "shape"), [[3.9, "ball"], [0.3, "box"]]
    )
    predict.run(
        sources.open_inputs(helpers_jobs.data_flags(path, job.root / "unused")),
        exported.directory,
        str(output),
        helpers_jobs.QUIET,
    )
    return [json.loads(line) for line in output.read_text().splitlines()]


def test_predictions(trained):
    kind = trained.kind
    large, small = _predicted(trained.job, trained.exported)
    if kind == "several classes":
        assert set(large["classes"]) == {"big", "round", "very big"}
        assert small["classes"] == []
        assert small["probabilities"].keys() == {"big", "round", "very big"}
    elif kind == "several labels":
        assert large["bought"]["class"] == "yes"
        assert "round" in large["tags"]["classes"]
        assert small["tags"]["classes"] == []
        assert large["visits"]["prediction"] > small["visits"]["prediction"] > 0
    else:
        assert large["prediction"] > small["prediction"] > 0
        if kind == "logistic":
            assert large["prediction"] < 1
