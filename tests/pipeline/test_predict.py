"""The predict command's work: CSV rows through an exported version."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
from pathlib import Path

import helpers_jobs
import helpers_predict
import numpy as np
import pytest
from helpers_formats import WRITERS
from helpers_stage import data_flags

from export import saved_model, versions
from input_fns import records
from pipeline import declaration as declarations
from pipeline import estimators, predict
from pipeline.compat import tf
from pipeline.prediction import version as prediction
from pipeline.preprocess.sources import registry
from pipeline.types import ColumnType, ExitCode, UserError

COLOUR = helpers_jobs.COLOUR
HEADER = [COLOUR, "age", "score", "city", "kind", "tag"]
ROW = ["rot", 35, 0.75, "Köln", 2, "t1"]


@pytest.fixture(params=helpers_jobs.MODELS)
def version(request, small_job) -> str:
    return versions.find(str(small_job.export_dir(request.param)), None)


@pytest.fixture
def one_version(small_job) -> str:
    return versions.find(str(small_job.export_dir("wide_deep")), None)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    return helpers_predict.load_once(monkeypatch)


def _write(path: Path, lines, header=HEADER) -> str:
    return str(helpers_jobs.write_csv(path, header, lines))


def _sources(paths):
    """Returns the sources of files, in the order of the paths."""
    return [s for p in paths for s in registry.open_inputs(data_flags(p))]


def _predict(paths, version_dir, output) -> tuple[predict.PredictResult, list[dict]]:
    result = predict.run(_sources(paths), version_dir, str(output), helpers_jobs.QUIET)
    assert result.output == str(output)
    lines = Path(output).read_text(encoding="utf-8").splitlines()
    return result, [json.loads(line) for line in lines]


def _rejects(result) -> list[dict]:
    with open(result.rejects, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def _changed(**changes) -> list:
    values = dict(zip(HEADER, ROW, strict=True)) | changes
    return list(values.values())


# --- what is written -------------------------------------------------------------


def _expected(job, model: str, path: str, tmp_path) -> list[dict]:
    """Returns what Estimator.predict says of the rows of a job's CSV file."""
    from pipeline.preprocess import csv_source, example_encoder, typed

    trained = job.model(model)
    columns = trained.declaration.input_columns
    shard = str(tmp_path / "rows.tfrecord")
    rows = 0
    with tf.io.TFRecordWriter(shard) as writer:
        for raw in csv_source.read_batches(path, [c.name for c in columns]):
            for example in example_encoder.encode(typed.convert(raw, columns)[0].table):
                writer.write(example)
                rows += 1
    unlabelled = declarations.load(str(job.root / "features.yaml"))
    unlabelled = type(unlabelled)(
        unlabelled.columns, unlabelled.features, unlabelled.split
    )
    input_fn = records.eval_input_fn(records.Records((shard,), rows), unlabelled, 100)
    return list(estimators.make_estimator(trained).predict(input_fn))


@pytest.mark.parametrize("model", helpers_jobs.MODELS)
def test_every_row_has_the_answer_of_the_estimator(small_job, model, tmp_path):
    version = versions.find(str(small_job.export_dir(model)), None)
    path = str(small_job.input)
    result, found = _predict([path], version, tmp_path / "out.jsonl")
    assert result.rows == len(found) == helpers_jobs.ROWS
    assert (result.rejects, result.rejected) == (None, 0)
    assert [row["line"] for row in found] == list(range(2, helpers_jobs.ROWS + 2))
    assert {row["file"] for row in found} == {path}
    expected = _expected(small_job, model, path, tmp_path)
    for row, wanted in zip(found, expected, strict=True):
        assert row["class"] == wanted["classes"][0].decode()
        assert list(row["probabilities"]) == ["nein", "ja"]
        np.testing.assert_allclose(
            list(row["probabilities"].values()), wanted["probabilities"], atol=1e-5
        )


def test_small_batches_change_nothing(small_job, one_version, tmp_path, monkeypatch):
    path = str(small_job.input)
    _, whole = _predict([path], one_version, tmp_path / "a.jsonl")
    monkeypatch.setattr(prediction, "_BATCH", 7)
    _, parts = _predict([path], one_version, tmp_path / "b.jsonl")
    assert [row["line"] for row in parts] == [row["line"] for row in whole]
    for part, row in zip(parts, whole, strict=True):
        assert part["probabilities"] == pytest.approx(row["probabilities"], abs=1e-6)


def test_files_are_taken_in_order_and_may_be_compressed(one_version, tmp_path):
    b = _write(tmp_path / "b.csv", [ROW, _changed(age=1)])
    a = _write(tmp_path / "a.csv", [_changed(age=2)])
    with gzip.open(tmp_path / "c.csv.gz", "wb") as f:
        f.write(Path(b).read_bytes())
    c = str(tmp_path / "c.csv.gz")
    result, found = _predict([b, a, c], one_version, tmp_path / "out.jsonl")
    places = [(row["file"], row["line"]) for row in found]
    assert places == [(b, 2), (b, 3), (a, 2), (c, 2), (c, 3)]
    assert result.rows == 5
    assert found[0]["probabilities"] == found[3]["probabilities"]


def test_all_formats_have_the_same_answers(one_version, tmp_path):
    kinds = {int: ColumnType.INT, float: ColumnType.FLOAT, str: ColumnType.STRING}
    rows = [ROW, _changed(age=1), _changed(city="Bonn")]
    table = {
        name: (kinds[type(value)], [row[i] for row in rows])
        for i, (name, value) in enumerate(zip(HEADER, ROW, strict=True))
    }
    paths = [str(write(tmp_path / f"a.{n}", table)) for n, write in WRITERS.items()]
    result, found = _predict(paths, one_version, tmp_path / "out.jsonl")
    assert (result.rows, result.rejected) == (3 * len(paths), 0)
    assert [row["file"] for row in found] == [path for path in paths for _ in rows]
    for i, row in enumerate(found):
        assert row["probabilities"] == pytest.approx(
            found[i % 3]["probabilities"], abs=1e-6
        )


def test_columns_in_any_order_further_ones_and_no_label(one_version, tmp_path):
    plain = _write(tmp_path / "plain.csv", [ROW])
    other = _write(
        tmp_path / "other.csv",
        [["x", *reversed(ROW), "maybe"]],
        header=["unknown", *reversed(HEADER), "bought"],
    )
    _, found = _predict([plain, other], one_version, tmp_path / "out.jsonl")
    assert found[0]["probabilities"] == found[1]["probabilities"]


def test_missing_values_are_the_defaults(version, tmp_path):
    path = _write(
        tmp_path / "rows.csv",
        [
            ["keine", 35, 0.5, "Köln", 1, "none"],
            ["", 35, "", "Köln", "", ""],
            [" ? ", 35, "NA", "Köln", " ", "  "],
        ],
    )
    _, found = _predict([path], version, tmp_path / "out.jsonl")
    for row in found[1:]:
        assert row["probabilities"] == pytest.approx(
            found[0]["probabilities"], abs=1e-6
        )


def test_values_never_seen_are_predicted(version, tmp_path):
    path = _write(tmp_path / "rows.csv", [["lila", -(2**63), -1e30, "?", 99, "\x01"]])
    result, found = _predict([path], version, tmp_path / "out.jsonl")
    assert result.rows == 1
    assert sum(found[0]["probabilities"].values()) == pytest.approx(1, abs=1e-6)


def test_only_a_header_gives_an_empty_file(one_version, tmp_path):
    path = _write(tmp_path / "rows.csv", [])
    result, found = _predict([path], one_version, tmp_path / "out.jsonl")
    assert found == [] and result.rows == 0 and result.rejects is None
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "rows.csv"]


def test_rejects_say_why_in_the_order_of_the_file(one_version, tmp_path):
    path = _write(
        tmp_path / "rows.csv",
        [
            _changed(age="old"),
            ROW,
            ["too", "short"],
            _changed(city=""),
            _changed(score="1,5"),
            ROW,
        ],
    )
    result, found = _predict([path], one_version, tmp_path / "out.jsonl")
    assert [row["line"] for row in found] == [3, 7]
    assert (result.rows, result.rejected) == (2, 4)
    assert result.rejects == f"{tmp_path / 'out.jsonl'}.rejects.jsonl"
    rejects = _rejects(result)
    assert [r["line"] for r in rejects] == [2, 4, 5, 6]
    assert [r["column"] for r in rejects] == ["age", None, "city", "score"]
    assert "'old'" in rejects[0]["reason"]
    assert rejects[1]["reason"] == "has 2 fields, expected 6"
    assert "required" in rejects[2]["reason"]
    assert rejects[1]["text"] == "too,short"
    assert {r["file"] for r in rejects} == {path}


def test_old_rejects_do_not_stay(one_version, tmp_path):
    bad = _write(tmp_path / "bad.csv", [["x"] * 6])
    good = _write(tmp_path / "good.csv", [ROW])
    result, found = _predict([bad], one_version, tmp_path / "out.jsonl")
    assert found == [] and os.path.exists(result.rejects)
    _predict([good], one_version, tmp_path / "out.jsonl")
    assert not os.path.exists(result.rejects)


def test_text_stays_readable(one_version, tmp_path):
    path = _write(tmp_path / "größe.csv", [ROW])
    _predict([path], one_version, tmp_path / "out.jsonl")
    assert "größe.csv" in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


def test_a_file_name_that_is_no_text_is_kept(one_version, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    shutil.copy(_write(tmp_path / "rows.csv", [ROW]), path)
    _, found = _predict([path], one_version, tmp_path / "out.jsonl")
    assert found[0]["file"] == path


@pytest.mark.parametrize("task", ["multi_class", "regression"])
def test_other_labels(task_jobs, task, tmp_path):
    model = task_jobs[task].model("keras_wide_deep")
    directory = tmp_path / "version"
    saved_model.write(
        estimators.make_estimator(model),
        estimators.latest_checkpoint(model)[0],
        model.declaration.input_columns,
        str(directory),
    )
    (directory / versions.EXTRA).mkdir()
    text = declarations.dump(model.declaration)
    (directory / versions.DECLARATION_FILE).write_text(text, encoding="utf-8")
    path = _write(tmp_path / "rows.csv", [ROW, _changed(kind=7)])
    _, found = _predict([path], str(directory), tmp_path / "out.jsonl")
    for row in found:
        del row["file"], row["line"]
        if task == "regression":
            assert list(row) == ["prediction"] and math.isfinite(row["prediction"])
            continue
        assert list(row) == ["class", "probabilities"]
        assert list(row["probabilities"]) == ["1", "2", "3"]
        assert row["class"] == max(row["probabilities"], key=row["probabilities"].get)
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-6)


def test_no_finite_answer_is_null_and_not_broken_json(
    one_version, tmp_path, monkeypatch
):
    def serve(examples):
        return {"predictions": tf.constant([[math.nan], [math.inf], [1.5]])}

    serve.structured_input_signature = ((), {"examples": None})
    monkeypatch.setattr(prediction, "load", lambda path: {"serving_default": serve})
    path = _write(tmp_path / "rows.csv", [ROW] * 3)
    _, found = _predict([path], one_version, tmp_path / "out.jsonl")
    assert [row["predictions"] for row in found] == [[None], [None], [1.5]]


# --- what is refused -------------------------------------------------------------


def _error(paths, version_dir, output) -> UserError:
    with pytest.raises(UserError) as caught:
        predict.run(_sources(paths), version_dir, str(output), helpers_jobs.QUIET)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_missing_column_is_named_before_anything_is_loaded(
    one_version, tmp_path, monkeypatch
):
    monkeypatch.setattr(prediction, "load", None)
    path = _write(tmp_path / "rows.csv", [ROW[1:]], header=HEADER[1:])
    error = _error([path], one_version, tmp_path / "out.jsonl")
    assert f"{path} has no column {COLOUR}" in str(error)
    assert not (tmp_path / "out.jsonl").exists()


def test_an_empty_file_is_named(one_version, tmp_path):
    path = tmp_path / "rows.csv"
    path.touch()
    assert f"{path} is empty" in str(_error([str(path)], one_version, "out.jsonl"))


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_the_output_may_not_replace_an_input(one_version, tmp_path, link):
    path = _write(tmp_path / "rows.csv", [ROW])
    before = Path(path).read_bytes()
    output = path
    if link:
        output = str(tmp_path / "other.csv")
        link(path, output)
    assert "is an --input" in str(_error([path], one_version, output))
    assert Path(path).read_bytes() == before


def test_the_rejects_may_not_replace_an_input(one_version, tmp_path):
    path = _write(tmp_path / "out.rejects.jsonl", [ROW])
    assert "is an --input" in str(_error([path], one_version, tmp_path / "out"))


def test_the_output_may_not_be_a_directory(one_version, tmp_path):
    path = _write(tmp_path / "rows.csv", [ROW])
    (tmp_path / "out").mkdir()
    assert "is a directory" in str(_error([path], one_version, tmp_path / "out"))


def test_a_failure_leaves_the_old_output(one_version, tmp_path):
    (tmp_path / "out.jsonl").write_text("before\n")
    good = _write(tmp_path / "a.csv", [ROW])
    with gzip.open(tmp_path / "b.csv.gz", "wb") as f:
        f.write(Path(good).read_bytes() * 1000)
    content = (tmp_path / "b.csv.gz").read_bytes()
    (tmp_path / "b.csv.gz").write_bytes(content[: len(content) // 2])
    before = sorted(os.listdir(tmp_path))
    paths = [good, str(tmp_path / "b.csv.gz")]
    error = _error(paths, one_version, tmp_path / "out.jsonl")
    assert "b.csv.gz" in str(error) and error.exit_code is ExitCode.BAD_DATA
    assert (tmp_path / "out.jsonl").read_text() == "before\n"
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    "name", ["saved_model.pb", "variables/variables.index", versions.DECLARATION_FILE]
)
@pytest.mark.parametrize("size", [None, 0, 50])
def test_a_damaged_version_is_one_line(
    one_version, tmp_path, load_once, monkeypatch, name, size
):
    monkeypatch.setattr(prediction, "load", load_once)
    copy = tmp_path / "version"
    shutil.copytree(one_version, copy)
    if size is None:
        (copy / name).unlink()
    else:
        os.truncate(copy / name, size)
    path = _write(tmp_path / "rows.csv", [ROW])
    error = _error([path], str(copy), tmp_path / "out.jsonl")
    assert str(copy) in str(error)
    assert not (tmp_path / "out.jsonl").exists()
