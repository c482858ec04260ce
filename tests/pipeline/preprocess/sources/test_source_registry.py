"""Which files --input means and how each is read; every mistake in one line."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from helpers_formats import WRITERS, compressed, example, write_records

from pipeline.flags.data import DataFlags
from pipeline.preprocess.sources import registry
from pipeline.preprocess.sources.base import WHOLE
from pipeline.types import ColumnType, UserError

TABLE = {"a": (ColumnType.INT, [1, 2]), "b": (ColumnType.STRING, ["x", "y"])}


def flags(value, **changes):
    return DataFlags(str(value), None, None, 0.01, 64, (), **changes)


def names(value, **changes):
    return [Path(s.path).name for s in registry.open_inputs(flags(value, **changes))]


def kinds(value, **changes):
    return [type(s).__name__ for s in registry.open_inputs(flags(value, **changes))]


def rows(value, **changes):
    found = []
    for source in registry.open_inputs(flags(value, **changes)):
        for raw in source.read(WHOLE, source.header().names):
            found += raw.table.to_pylist()
    return found


def error(value, **changes) -> str:
    with pytest.raises(UserError) as caught:
        for source in registry.open_inputs(flags(value, **changes)):
            source.header()
    assert "\n" not in str(caught.value)
    return str(caught.value)


KINDS = {
    "csv": "DelimitedSource",
    "tsv": "DelimitedSource",
    "jsonl": "JsonLinesSource",
    "parquet": "ParquetSource",
    "tfrecord": "TFRecordSource",
}


@pytest.mark.parametrize("name", WRITERS)
def test_told_by_content_without_a_name(tmp_path, name):
    path = WRITERS[name](tmp_path / "data", TABLE)
    assert kinds(path) == [KINDS[name]]
    assert len(rows(path)) == 2
    if name != "parquet":
        assert kinds(compressed(path)) == [KINDS[name]]
        assert len(rows(compressed(path))) == 2


@pytest.mark.parametrize("name", WRITERS)
def test_told_by_name_where_there_are_no_rows(tmp_path, name):
    empty = {column: (kind, []) for column, (kind, _) in TABLE.items()}
    path = WRITERS[name](tmp_path / f"data.{name}", empty)
    assert kinds(path) == [KINDS[name]]
    assert rows(path, input_format=name) == [] if path.stat().st_size else True


@pytest.mark.parametrize("ending", ["csv", "tsv", "tab", "jsonl", "ndjson", "json"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, "zstd"])
def test_all_compressions(tmp_path, ending, pack):
    text = {"t": "a\tb\n1\tx\n", "c": "a,b\n1,x\n"}.get(ending[0], '{"a":1,"b":"x"}\n')
    if pack == "zstd":
        data = pa.compress(text.encode(), "zstd", asbytes=True)
    else:
        data = pack(text.encode())
    path = tmp_path / f"data.{ending}"
    path.write_bytes(data)
    assert rows(path) == [{"a": b"1", "b": b"x"}]


def test_other_delimiters_and_files_without_a_header(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("a;b\n1;x,y\n")
    assert rows(path, delimiter=";") == [{"a": b"1", "b": b"x,y"}]
    path.write_text("1,x\n2,y\n")
    assert rows(path, columns=("a", "b")) == [
        {"a": b"1", "b": b"x"},
        {"a": b"2", "b": b"y"},
    ]
    path = tmp_path / "data.tsv"
    path.write_text("\ufeff1\tx\n")
    assert rows(path, columns=("a", "b")) == [{"a": b"1", "b": b"x"}]
    assert rows(path, columns=("a",)) == []


def test_unsure_is_one_line(tmp_path):
    path = tmp_path / "data.txt"
    for text in ("one column\n1\n", "a,b\tc\n", ""):
        path.write_text(text)
        message = error(path)
        assert "data.txt" in message and "--input_format=" in message
        assert "neither its name" in message
    path.write_text("one column\n1\n")
    assert rows(path, input_format="csv") == [{"one column": b"1"}]


def test_a_format_that_is_not_the_files(tmp_path):
    parquet = WRITERS["parquet"](tmp_path / "a.parquet", TABLE)
    text = WRITERS["csv"](tmp_path / "a.csv", TABLE)
    assert "--input_format=parquet" in error(parquet, input_format="csv")
    assert "a.csv" in error(text, input_format="parquet")
    assert "no JSON lines" in error(text, input_format="jsonl")
    assert "--delimiter is for CSV" in error(parquet, delimiter=";")
    assert "--columns is for CSV" in error(parquet, columns=("a",))
    renamed = tmp_path / "b.tfrecord"
    renamed.write_bytes(b"neither record nor text")
    assert "no tfrecord file" in error(renamed)
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"PK\x03\x04....")
    assert "zip archive" in error(archive)


def test_several_files_of_several_formats(tmp_path):
    for name, write in WRITERS.items():
        write(tmp_path / f"part.{name}", TABLE)
    value = f"{tmp_path}/part.[cjp]*, {tmp_path}/*.tsv,{tmp_path}/part.csv"
    assert names(value) == ["part.csv", "part.jsonl", "part.parquet", "part.tsv"]


def test_run_date(tmp_path):
    for name in ("2013-06-01.csv", "20130601.csv"):
        WRITERS["csv"](tmp_path / name, TABLE)
    date = {"run_date": "2013-06-01"}
    assert names(tmp_path / "{date}.csv", **date) == ["2013-06-01.csv"]
    assert names(tmp_path / "{date:%Y%m%d}.csv", **date) == ["20130601.csv"]
    both = f"{tmp_path}/{{date}}.csv,{tmp_path}/{{date:%Y}}*.csv"
    assert names(both, **date) == ["2013-06-01.csv", "20130601.csv"]
    assert "--run_date=2013-06-01" in error(tmp_path / "{date}.csv")
    assert "2013-06-02.csv" in error(tmp_path / "{date}.csv", run_date="2013-06-02")


def _prepare(root: Path, name: str, version: str, records, file_format="tfrecord"):
    """Writes a dataset as TensorFlow Datasets lays it out."""
    directory = root / name / version
    directory.mkdir(parents=True)
    scalar = "tensorflow_datasets.core.features.tensor_feature.Tensor"
    features = {
        column: {
            "pythonClassName": scalar,
            "tensor": {"shape": {}, "dtype": dtype, "encoding": "none"},
        }
        for column, dtype in (("a", "int64"), ("b", "string"))
    }
    kind = "tensorflow_datasets.core.features.features_dict.FeaturesDict"
    (directory / "features.json").write_text(
        json.dumps({"pythonClassName": kind, "featuresDict": {"features": features}})
    )
    info = {
        "name": name.split("/")[0],
        "version": version,
        "fileFormat": file_format,
        "splits": [
            {
                "name": split,
                "numBytes": "100",
                "shardLengths": [str(len(records))],
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            }
            for split in ("train", "test")
        ],
    }
    (directory / "dataset_info.json").write_text(json.dumps(info))
    for split in ("train", "test"):
        file = f"{name.split('/')[0]}-{split}.{file_format}-00000-of-00001"
        write_records(directory / file, records)
    return directory


def test_prepared_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    old = [example({"a": 0, "b": "old"})]
    new = [example({"a": 1, "b": "x"}), example({"a": 2, "b": "y"})]
    _prepare(tmp_path, "people", "9.0.0", old)
    directory = _prepare(tmp_path, "people", "10.0.0", new)
    everything = [{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}] * 2
    for value in ("tfds:people", f"tfds:{directory}", f"tfds:{directory.parent}"):
        assert rows(value) == everything
        assert kinds(value) == ["TFRecordSource"] * 2
    assert rows("tfds:people:9.0.0") == [{"a": 0, "b": b"old"}] * 2
    WRITERS["csv"](tmp_path / "more.csv", TABLE)
    assert len(rows(f"tfds:people,{tmp_path}/more.csv")) == 6


def test_datasets_that_are_not_prepared(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    for value in ("tfds:mnist", "tfds:", f"tfds:{tmp_path}/none"):
        message = error(value)
        assert "is not prepared" in message and "nothing is downloaded" in message
    directory = _prepare(tmp_path, "people", "1.0.0", [example({"a": 1})])
    assert "is not prepared" in error("tfds:people:2.0.0")
    (directory / "people-test.tfrecord-00000-of-00001").unlink()
    assert "people-test.tfrecord-00000-of-00001 is missing" in error("tfds:people")
    for config in ("big", "small"):
        _prepare(tmp_path, f"text/{config}", "1.0.0", [example({"a": 1})])
    assert "choose one, e.g. tfds:text/big" in error("tfds:text")
    assert len(rows("tfds:text/small")) == 2
    _prepare(tmp_path, "arrays", "1.0.0", [], "array_record")
    assert "stored as array_record" in error("tfds:arrays")
    broken = tmp_path / "broken" / "1.0.0"
    broken.mkdir(parents=True)
    (broken / "dataset_info.json").write_text("{")
    assert "no dataset that can be read" in error("tfds:broken")
