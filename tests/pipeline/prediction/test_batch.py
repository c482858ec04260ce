"""Batch prediction: formats, directories, keys, pieces and workers."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
from pathlib import Path

import helpers_jobs
import helpers_predict
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers_stage import data_flags

from export import versions
from input_fns import records
from pipeline import declaration as declarations
from pipeline import estimators, manifest, predict, show
from pipeline.compat import tf
from pipeline.prediction import answers
from pipeline.preprocess.sources import registry
from pipeline.types import ExitCode, Label, UserError

MODEL = "wide_deep"
HEADER = ["id", helpers_jobs.COLOUR, "age", "score", "city", "kind", "tag"]
FORMATS = ("jsonl", "csv", "parquet", "tfrecord")


def _row(number: int) -> list:
    age = "old" if number % 40 == 7 else number % 90
    return [f'{number:04d} "x"', "rot", age, number / 300, "Köln", 2, f"t{number % 9}"]


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> str:
    """300 rows of which 8 cannot be read; numbered by the column id."""
    path = tmp_path_factory.mktemp("raw") / "rows.csv"
    return str(helpers_jobs.write_csv(path, HEADER, [_row(i) for i in range(300)]))


@pytest.fixture(scope="module")
def version_dir(small_job) -> str:
    return versions.find(str(small_job.export_dir(MODEL)), None)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    helpers_predict.load_once(monkeypatch)


def _sources(path):
    return registry.open_inputs(data_flags(path))


def _settings(**changes) -> predict.Settings:
    return dataclasses.replace(predict.Settings(key_columns=("id",)), **changes)


def _to_file(raw, version_dir, output, **changes) -> predict.PredictResult:
    settings = _settings(**changes)
    return predict.run(
        _sources(raw), version_dir, str(output), helpers_jobs.QUIET, settings
    )


def _to_directory(raw, version_dir, directory, **changes) -> predict.PredictResult:
    settings = _settings(**changes)
    return predict.run_directory(
        _sources(raw), version_dir, str(directory), helpers_jobs.QUIET, settings
    )


def _json(path) -> list[dict]:
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@pytest.fixture(scope="module")
def expected(small_job, raw, tmp_path_factory) -> dict[str, np.ndarray]:
    """What Estimator.predict says of each row, by its id."""
    from pipeline.preprocess import csv_source, example_encoder, typed

    trained = small_job.model(MODEL)
    columns = trained.declaration.input_columns
    names = ["id", *(c.name for c in columns)]
    shard = str(tmp_path_factory.mktemp("expected") / "rows.tfrecord")
    ids = []
    with tf.io.TFRecordWriter(shard) as writer:
        for batch in csv_source.read_batches(raw, names):
            good, _ = typed.convert(batch, columns)
            known = dict(zip(batch.lines, batch.table.column("id"), strict=True))
            ids += [known[line].as_py().decode() for line in good.lines]
            for example in example_encoder.encode(good.table):
                writer.write(example)
    whole = declarations.load(str(small_job.root / "features.yaml"))
    unlabelled = type(whole)(whole.columns, whole.features, whole.split)
    input_fn = records.eval_input_fn(
        records.Records((shard,), len(ids)), unlabelled, 100
    )
    predictions = estimators.make_estimator(trained).predict(input_fn)
    return {
        one: row["probabilities"] for one, row in zip(ids, predictions, strict=True)
    }


def _read(path: str) -> list[tuple[str, int, str, float, float]]:
    """Returns id, line, class and both probabilities of each row, of any format."""
    names = ("key.id", "line", "class", "probabilities.nein", "probabilities.ja")
    ending = path.rsplit(".", 1)[1]
    if ending == "jsonl":
        return [
            (r["key"]["id"], r["line"], r["class"], *r["probabilities"].values())
            for r in _json(path)
        ]
    if ending == "csv":
        with open(path, encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
    elif ending == "parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = []
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            features = tf.train.Example.FromString(record).features.feature
            rows.append(
                {
                    n: getattr(f, f.WhichOneof("kind")).value[0]
                    for n, f in features.items()
                }
            )
        rows = [
            {n: v.decode() if isinstance(v, bytes) else v for n, v in row.items()}
            for row in rows
        ]
    return [
        (row[names[0]], int(row[names[1]]), row[names[2]], *map(float, both))
        for row in rows
        for both in [[row[name] for name in names[3:]]]
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_the_answers_of_the_estimator(
    kind, raw, version_dir, expected, tmp_path
):
    output = tmp_path / f"out.{kind}"
    # Several pieces are joined.
    result = _to_file(raw, version_dir, output, piece_bytes=2000)
    assert (result.rows, result.rejected) == (292, 8)
    found = _read(str(output))
    assert [row[0] for row in found] == list(expected)
    assert [row[1] for row in found] == [i + 2 for i in range(300) if i % 40 != 7]
    for identity, _, name, no, yes in found:
        np.testing.assert_allclose([no, yes], expected[identity], atol=1e-6)
        assert name == ("ja" if yes > no else "nein")
    assert [r["line"] for r in _json(result.rejects)] == list(range(9, 302, 40))
    assert sorted(os.listdir(tmp_path)) == [output.name, f"{output.name}.rejects.jsonl"]


@pytest.mark.parametrize("kind", FORMATS)
def test_only_a_header_gives_no_rows(kind, version_dir, tmp_path):
    raw = str(helpers_jobs.write_csv(tmp_path / "rows.csv", HEADER, []))
    result = _to_file(raw, version_dir, tmp_path / f"out.{kind}")
    assert result.rows == 0 and _read(result.output) == []


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name != manifest.FILE_NAME
    }


def test_a_directory_counts_every_row_and_is_reused(raw, version_dir, tmp_path):
    directory = tmp_path / "out"
    result = _to_directory(raw, version_dir, directory, rows_per_file=100)
    found = manifest.read(str(directory))
    files = [entry["file"] for entry in found.results["files"]]
    assert files == [f"predictions-0000{i}-of-00003.jsonl" for i in range(3)]
    assert [entry["rows"] for entry in found.results["files"]] == [100, 100, 92]
    assert set(os.listdir(directory)) == {*files, "rejects.jsonl", manifest.FILE_NAME}
    counts = [found.results[f"rows_{n}"] for n in ("read", "written", "rejected")]
    assert counts == [300, 292, 8]
    assert found.results["rejected_by_column"] == {"age": 8}
    lines = [row["line"] for name in files for row in _json(directory / name)]
    assert lines == [i + 2 for i in range(300) if i % 40 != 7]
    assert len(_json(result.rejects)) == 8
    assert "written 292 + rejected 8" in "\n".join(show.describe(str(directory)))

    before = os.stat(directory).st_ino
    again = _to_directory(raw, version_dir, directory, rows_per_file=100)
    assert again.reused and again == dataclasses.replace(result, reused=True)
    other = _to_directory(raw, version_dir, directory, rows_per_file=200)
    assert not other.reused and os.stat(directory).st_ino != before
    assert len(os.listdir(directory)) == 4
    assert set(os.listdir(tmp_path)) == {".out.lock", "out"}


def test_beam_writes_the_very_same_files(raw, version_dir, tmp_path):
    one = _to_directory(raw, version_dir, tmp_path / "one", piece_bytes=2000)
    beam = _to_directory(
        raw,
        version_dir,
        tmp_path / "beam",
        piece_bytes=2000,
        beam_options=("--runner=FnApiRunner",),
    )
    assert (beam.rows, beam.rejected) == (one.rows, one.rejected) == (292, 8)
    assert _contents(tmp_path / "beam") == _contents(tmp_path / "one")


@pytest.mark.slow
def test_several_processes_write_the_very_same_files(raw, version_dir, tmp_path):
    _to_directory(raw, version_dir, tmp_path / "one", piece_bytes=4000)
    _to_directory(
        raw,
        version_dir,
        tmp_path / "two",
        piece_bytes=4000,
        beam_options=(
            "--direct_running_mode=multi_processing",
            "--direct_num_workers=2",
        ),
    )
    assert _contents(tmp_path / "two") == _contents(tmp_path / "one")


def test_a_failure_in_a_worker_is_one_line(raw, version_dir, tmp_path):
    broken = tmp_path / "version"
    broken.mkdir()
    declared = "assets.extra"
    (broken / declared).symlink_to(Path(version_dir) / declared)
    with pytest.raises(UserError, match="cannot be loaded") as caught:
        _to_directory(
            raw, str(broken), tmp_path / "out", beam_options=("--runner=FnApiRunner",)
        )
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_key_column_that_is_not_there_is_named(raw, version_dir, tmp_path):
    with pytest.raises(UserError, match="has no column customer") as caught:
        _to_file(raw, version_dir, tmp_path / "out.jsonl", key_columns=("customer",))
    assert "--key_columns" in str(caught.value)


def test_another_signature_answers(raw, version_dir, tmp_path):
    result = _to_file(raw, version_dir, tmp_path / "out.csv", signature="transform")
    with open(result.output, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    trained = json.loads(rows[0]["score"])
    assert len(rows) == 292 and len(trained) == 1
    assert all(row["line"] and row["key.id"] for row in rows)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"signature": "guess"}, "--signature=guess: .* has classify, predict,"),
        ({"signature": "predict"}, "predict needs one that takes examples"),
        (
            {"signature": "transform", "format": "tfrecord"},
            "tfrecord takes one value a row, and .* is a list",
        ),
    ],
)
def test_what_cannot_be_written_is_one_line(
    raw, version_dir, tmp_path, changes, message
):
    with pytest.raises(UserError, match=message) as caught:
        _to_file(raw, version_dir, tmp_path / "out", **changes)
    assert "\n" not in str(caught.value)
    assert not os.listdir(tmp_path)


def test_a_directory_with_other_files_stays(raw, version_dir, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="would remove"):
        _to_directory(raw, version_dir, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "x"


def test_predictions_are_no_input_of_their_own_directory(raw, version_dir, tmp_path):
    directory = tmp_path / "out"
    _to_directory(raw, version_dir, directory)
    inside = str(directory / "predictions-00000-of-00001.jsonl")
    with pytest.raises(UserError, match="which is an --input"):
        _to_directory(inside, version_dir, directory)


def test_a_directory_in_use_is_locked(raw, version_dir, tmp_path):
    from pipeline import files

    with files.locked(str(tmp_path / "out")), pytest.raises(UserError) as caught:
        _to_directory(raw, version_dir, tmp_path / "out")
    assert caught.value.exit_code is ExitCode.LOCKED


# --- answers as columns ------------------------------------------------------------


@pytest.mark.parametrize(
    "values, wanted",
    [
        (np.array([1.5, np.nan, np.inf], np.float32), [1.5, None, None]),
        (np.array([[1.0, np.nan], [3.0, 4.0]]), [[1.0, None], [3.0, 4.0]]),
        (np.arange(8).reshape(2, 2, 2), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (np.array([b"a", b"\xff", "ü".encode()], object), ["a", "\\xff", "ü"]),
        (np.zeros([2, 0], np.float32), [[], []]),
        (np.zeros([0, 3], np.float32), []),
        (np.array([True, False]), [True, False]),
        (tf.constant([1.5], tf.bfloat16).numpy(), [1.5]),
    ],
)
def test_values_of_any_shape_become_columns(values, wanted):
    assert answers.array(values).to_pylist() == wanted


def test_labels_of_a_row_with_several_are_a_list():
    label = Label("tags", classes=("a", "b"), separator=";")
    probabilities = np.array([[0.9, 0.8], [0.1, 0.2]], np.float32)
    classes = np.array([[b"a", b"b"], [b"a", b"b"]], object)
    found = answers._of_label(
        {"probabilities": probabilities, "classes": classes}, "", label
    )
    assert found["classes",].to_pylist() == [["a", "b"], []]
    rows = answers.Answers("f", np.array([2, 3]), found)
    assert rows.table().column("classes").type == pa.list_(pa.string())
    assert list(rows.rows())[1]["probabilities"] == {
        "a": pytest.approx(0.1),
        "b": pytest.approx(0.2),
    }
