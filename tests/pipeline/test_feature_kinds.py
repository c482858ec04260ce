"""Every kind of feature through preprocess, training, export and serving."""

from __future__ import annotations

import base64
import json
import os
import random

import helpers_jobs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers_images import png

from export import versions
from input_fns import records
from pipeline import estimators
from pipeline import manifest as manifests
from pipeline.compat import tf
from pipeline.preprocess import constants_files, stage
from pipeline.types import UserError

ROWS = 160
DECLARATION = """
label: {column: y, classes: ["0", "1"]}
split: {fractions: {train: 0.6, eval: 0.2, test: 0.2}, key: [row]}
columns:
  row: {type: int}
  y: {type: int}
  fare: {type: float, default: 5}
  origin: {type: string}
  target: {type: string, default: nowhere}
  tags: {type: string, default: "|"}
  amounts: {type: string, default: "|"}
  seen: {type: string, default: never}
  since: {type: int, default: -1000000000000}
  review: {type: string, default: none}
  pages: {type: string, default: "start"}
  photo: {type: string, default: none}
  id: {type: int, default: -1}
features:
  fare: {kind: numeric, clip: [0, 20], scale: minmax, use: both}
  origin: {kind: vocabulary, embedding: 3, shared: place, oov_buckets: 2}
  target: {kind: vocabulary, embedding: 3, shared: place, oov_buckets: 2, use: deep}
  tags: {kind: vocabulary, separator: "|", combiner: sqrtn, embedding: 2, min_count: 2}
  amounts: {kind: hashed, column: tags, separator: "|", weights: amounts, buckets: 9}
  id: {kind: identity, buckets: 4, weights: fare}
  year: {kind: date, column: seen, part: year}
  month: {kind: date, column: seen, part: month}
  hour: {kind: date, column: since, part: hour, embedding: 2}
  words: {kind: text, column: review, lower: true, ngrams: 2, embedding: 4, top_k: 30}
  letters: {kind: text, column: review, split: characters, ngrams: 2, buckets: 50}
  pages: {kind: sequence, separator: ">", max_length: 3, embedding: 2}
  photo: {kind: image, height: 2, width: 2}
  tags_x_month: {kind: crossed, of: [tags, month], buckets: 30, use: both}
"""


def _rows():
    draw = random.Random(3)
    places = ["AAA", "BBB", "CCC", None]
    tags = ["a|b", "b", None, "", "a||c| b", "new{}", "c|c|c"]
    seen = ["2024-02-29", "1969-12-31T23:59:59Z", None, "soon", "2023-07-01 12:30"]
    reviews = ["Good, very GOOD", "b\u00e4d \u65e5\u672c", None, "it is", "good {}"]
    pages = ["start>buy", "start>help>help>exit", None, ">", "p{}>start"]
    photos = [png(), None, png(np.full((5, 4, 3), 200, np.uint8))]
    for i in range(ROWS):
        choose = [draw.choice(v) for v in (tags, seen, reviews, pages)]
        choose = [v.format(i) if v else v for v in choose]
        yield {
            "row": i,
            "y": draw.randrange(2),
            "fare": draw.choice([None, -7.0, 3.5, 19.0, 1000.0]),
            "origin": draw.choice(places[:3]) if i % 9 else f"X{i}",
            "target": draw.choice(places),
            "tags": choose[0],
            "amounts": draw.choice([None, "1|2", "x", "0.5|-1|3"]),
            "seen": choose[1],
            "since": draw.choice([None, 0, -1, 10**9, 2**50]),
            "review": choose[2],
            "pages": choose[3],
            "photo": draw.choice(photos),
            "id": draw.choice([None, 0, 3, 4, -5]),
        }


@pytest.fixture(name="job", scope="module")
def make_job(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    (root / "features.yaml").write_text(DECLARATION, encoding="utf-8")
    rows = list(_rows())
    table = pa.Table.from_pylist(rows)
    table = table.set_column(
        table.column_names.index("photo"), "photo", pa.array([r["photo"] for r in rows])
    )
    path = root / "rows.parquet"
    pq.write_table(table, path)
    settings = helpers_jobs.data_flags(path, root / "features.yaml")
    stage.run(str(root / "dataset"), stage.plan(settings), helpers_jobs.QUIET)
    return helpers_jobs.Job(root, path)


def test_constants(job):
    constants = constants_files.read_constants(str(job.dataset_dir))
    vocabularies = constants.vocabularies
    assert vocabularies["origin"] == vocabularies["target"]
    assert {b"AAA", b"BBB", b"CCC", b"nowhere"} < set(vocabularies["origin"])
    assert set(vocabularies["tags"]) == {b"a", b"b", b"c"}
    assert {b"good", b"very good", b"it is", b"none"} <= set(vocabularies["words"])
    assert b"start" in vocabularies["pages"] and b"" not in vocabularies["pages"]
    assert constants.scalings["fare"].shift == 0
    assert constants.scalings["fare"].factor == 1 / 20
    assert 1969 < constants.scalings["year"].shift < 2024


@pytest.mark.slow
@pytest.mark.parametrize("name", helpers_jobs.MODELS)
def test_the_exported_model_agrees(job, name):
    model = helpers_jobs.train_model(job, name, max_steps=6, checkpoint_steps=3)
    helpers_jobs.export(job, name)
    directory = versions.find(str(job.export_dir(name)), None)
    found = manifests.read(directory).results["verification"]
    assert found["rows"] == job.dataset().shards("test").rows > 20
    assert found["largest_difference"] <= 1e-5

    # Missing and odd values in a request are treated as in the records.
    serve = tf.saved_model.load(directory).signatures["serving_default"]
    part = estimators.to_records(job.dataset().shards("test"))
    columns = model.declaration.input_columns
    serialized = list(records.serialized_rows(part, columns))
    predictions = estimators.make_estimator(model).predict(
        records.eval_input_fn(part, model.declaration, 16)
    )
    wanted = np.array([p["probabilities"] for p in predictions])
    asked = serve(examples=tf.constant(serialized))["probabilities"].numpy()
    np.testing.assert_allclose(asked, wanted, atol=1e-5)
    alone = serve(examples=tf.constant(serialized[:1]))["probabilities"].numpy()
    np.testing.assert_allclose(alone, wanted[:1], atol=1e-5)

    _check_transform(directory, serialized, model)
    reason = "feature tags may have several"
    if name == "wide_deep":
        reason = "--model=wide_deep reads feature columns"
    with pytest.raises(UserError, match=f"^--formats: {reason}"):
        helpers_jobs.export(job, name, formats=("onnx",))

    trained = estimators.make_estimator(model)
    names = [n for n in trained.get_variable_names() if "place" in n]
    tables = [n for n in names if not n.split("/")[-1].startswith(("Adam", "m", "v"))]
    shapes = [trained.get_variable_value(n).shape for n in tables]
    assert len([s for s in shapes if s[-1:] == (3,)]) == 1, tables
    (table,) = [n for n, s in zip(tables, shapes, strict=True) if s[-1:] == (3,)]
    first, *_, last = (
        tf.train.load_variable(path, table)
        for path in tf.train.get_checkpoint_state(
            str(job.model_dir(name))
        ).all_model_checkpoint_paths
    )
    assert (first != last).any()


def _check_transform(directory, serialized, model):
    """One tensor a feature; rows with fewer values than others are filled up."""
    signatures = tf.saved_model.load(directory).signatures
    found = signatures["transform"](examples=tf.constant(serialized))
    weighted = {"amounts/weights", "id/weights"}
    assert found.keys() == {*model.declaration.features, *weighted}
    assert all(len(value) == len(serialized) for value in found.values())
    assert found["photo"].shape[1:] == (2, 2, 3)
    assert found["fare"].shape[1:] == (1,) and found["fare"].dtype == tf.float32
    assert found["month"].shape[1:] == () and found["id/weights"].shape[1:] == ()
    ids, weights = found["amounts"].numpy(), found["amounts/weights"].numpy()
    assert ids.shape == weights.shape and ids.shape[1] == 3
    filled = ids == -1
    assert filled.any() and not filled.all()
    assert (weights[filled] == 0).all()
    # The order of values stays: "start" is the most frequent page.
    vocabulary = model.constants.vocabularies["pages"]
    of_pages = [
        tf.train.Example.FromString(row).features.feature["pages"].bytes_list.value
        for row in serialized
    ]
    for i, value in enumerate(of_pages):
        parts = [p for p in b"".join(value).split(b">") if p] if value else [b"start"]
        wanted = [vocabulary.index(p) if p in vocabulary else None for p in parts[:3]]
        shown = [n for n in found["pages"][i].numpy().tolist() if n != -1]
        assert len(shown) == len(wanted)
        assert [n for n, w in zip(shown, wanted, strict=True) if w is not None] == [
            w for w in wanted if w is not None
        ]


ONE_IMAGE = """
label: {column: y, classes: ["0", "1"]}
split: {by: column, column: part, values: {train: [t], eval: [e], test: [x]}}
columns: {y: {type: int}, part: {type: string}, photo: {type: string, default: none}}
features: {picture: {kind: image, column: photo, height: 1, width: 1}}
"""


@pytest.mark.slow
def test_formats_take_images(tmp_path):
    for package in ("ai_edge_litert", "tf2onnx", "onnxruntime"):
        pytest.importorskip(package)
    text = ONE_IMAGE.replace("height: 1, width: 1", "height: 2, width: 3")
    (tmp_path / "features.yaml").write_text(text, encoding="utf-8")
    rows = {"y": [0, 1] * 6, "part": ["t", "t", "e", "e", "x", "x"] * 2}
    rows["photo"] = [png(), None, png()] * 4
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    flags = helpers_jobs.data_flags(
        tmp_path / "rows.parquet", tmp_path / "features.yaml"
    )
    stage.run(str(tmp_path / "dataset"), stage.plan(flags), helpers_jobs.QUIET)
    job = helpers_jobs.Job(tmp_path, tmp_path / "rows.parquet")
    helpers_jobs.train_model(job, "keras_wide_deep", batch_size=4)
    result = helpers_jobs.export(job, "keras_wide_deep", formats=("litert", "onnx"))
    for found in result.manifest.results["formats"].values():
        for of_runtime in found["runtimes"].values():
            assert of_runtime["largest_difference"] <= 1e-5
    extra = os.path.join(result.directory, "assets.extra")
    with open(os.path.join(extra, "formats.json"), encoding="utf-8") as f:
        (described,) = json.load(f)["inputs"]
    assert described["shape"] == ["batch", 2, 3, 3]
    # An image is no text, so a request of the REST API has it in base64.
    with open(os.path.join(extra, "sample_requests", "predict.json"), "rb") as f:
        missing, there = json.load(f)["instances"]
    assert missing == {"photo": "none"}
    assert base64.b64decode(there["photo"]["b64"]) == png()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damaged"), [("wide_deep", b"GIF89a"), ("keras_wide_deep", png()[:60])]
)
def test_an_image_that_cannot_be_read_is_one_line(tmp_path, name, damaged):
    (tmp_path / "features.yaml").write_text(ONE_IMAGE, encoding="utf-8")
    rows = {"y": [0, 1] * 6, "part": ["t", "t", "e", "e", "x", "x"] * 2}
    rows["photo"] = [png(), None, png()] * 3 + [png(), damaged, None]
    rows["part"][10] = "t"
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    flags = helpers_jobs.data_flags(
        tmp_path / "rows.parquet", tmp_path / "features.yaml"
    )
    stage.run(str(tmp_path / "dataset"), stage.plan(flags), helpers_jobs.QUIET)
    job = helpers_jobs.Job(tmp_path, tmp_path / "rows.parquet")
    with pytest.raises(UserError, match="^feature picture: a value of column photo is"):
        helpers_jobs.train_model(job, name, batch_size=5)
