"""However the stage is run, and whatever holds the rows, the records are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers_formats import WRITERS
from helpers_stage import all_values, data_flags, preprocess, records

from pipeline import declaration as declarations
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.preprocess import infer, job, shards
from pipeline.preprocess.sources import registry
from pipeline.types import ColumnType, RecordForm

ROOT = Path(__file__).parents[3]
WORKERS = (
    "--direct_running_mode=multi_processing",
    "--direct_num_workers=2",
)
DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
split: {fractions: {train: 0.6, eval: 0.2, test: 0.2}, salt: s}
columns:
  n: {type: int}
  x: {type: float, missing: [NA], default: 0.5}
  c: {type: string, missing: ["?"], default: other}
  y: {type: string}
features:
  n: {kind: numeric}
  x: {kind: numeric}
  c: {kind: vocabulary}
"""


def table(count: int, more: str = ""):
    words = ["red" + more, "green" + more, None, "blue, dark" + more, '"quotes"' + more]
    words.append("two\nlines" + more)
    return {
        "n": (ColumnType.INT, list(range(count))),
        "x": (ColumnType.FLOAT, [i / 4 if i % 7 else None for i in range(count)]),
        "c": (ColumnType.STRING, [words[i % 6] for i in range(count)]),
        "y": (
            ColumnType.STRING,
            ["oops" if i % 50 == 9 else "yes" if i % 3 else "no" for i in range(count)],
        ),
    }


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.yaml"
    path.write_text(DECLARATION)
    return path


def test_formats(tmp_path, features):
    found = {}
    for name, write in WRITERS.items():
        path = write(tmp_path / f"data.{name}", table(300))
        directory = tmp_path / name
        manifest = preprocess(directory, path, features, max_reject_fraction=0.1)
        assert manifest.results["rows_rejected"] == 6
        lines = (directory / "rejects.jsonl").read_text().splitlines()
        rejects = [json.loads(line) for line in lines]
        numbers = [r["text"].partition(",")[0] for r in rejects]
        if name == "tsv":
            numbers = [r["text"].partition("\t")[0] for r in rejects]
        elif name != "csv":
            numbers = [str(json.loads(r["text"])["n"]) for r in rejects]
        assert numbers == ["9", "59", "109", "159", "209", "259"]
        if name in ("jsonl", "parquet", "tfrecord"):
            assert [r["line"] - 1 for r in rejects] == list(map(int, numbers))
        found[name] = records(directory)
    assert sum(map(len, found["csv"].values())) == 294
    for name, result in found.items():
        assert result == found["csv"], name


@pytest.mark.parametrize("name", WRITERS)
def test_inferred(tmp_path, name):
    rows = table(300)
    WRITERS[name](tmp_path / f"data.{name}", rows)
    sources = registry.open_inputs(data_flags(tmp_path / f"data.{name}"))
    declaration = infer.infer_declaration(sources, label="y")
    assert {c.name: c.type for c in declaration.columns.values()} == {
        column: kind for column, (kind, _) in rows.items()
    }
    assert declaration.label.classes == ("no", "oops", "yes")
    assert declaration.columns["x"].default is not None
    assert declaration.columns["n"].default is None


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_pieces_change_nothing(tmp_path, features, name):
    WRITERS[name](tmp_path / f"a.{name}", table(300))
    WRITERS[name](tmp_path / f"b.{name}", table(100))
    declaration = declarations.load(str(features))
    found = []
    flags = data_flags(tmp_path / f"?.{name}")
    for piece_bytes in (None, 2000, 100):
        directory = tmp_path / f"{piece_bytes}"
        directory.mkdir()
        output = job.run(
            job.JobSettings(
                sources=registry.open_inputs(flags),
                declaration=declaration,
                directory=str(directory),
                shard_bytes=1 << 20,
                record_form=RecordForm.ROWS,
                piece_bytes=piece_bytes,
            ),
            Console(-1),
        )
        written = shards.finalize(str(directory), output.shards)
        assert (len(written) > 6) == (piece_bytes is not None)
        rejects = [Path(p).read_text() for p in output.reject_files]
        found.append(
            (
                _rows_in_order(written),
                "".join(rejects),
                output.rejected,
                output.first_reason,
                output.rows_read,
            )
        )
    assert found[0] == found[1] == found[2]


def _rows_in_order(written):
    rows = {}
    for shard in written:
        data = tf.data.TFRecordDataset(shard.path).as_numpy_iterator()
        rows.setdefault(shard.split, []).extend(data)
    return rows


def _command(tmp_path, path, features, name, options):
    return [
        "preprocess",
        f"--input={path}",
        f"--features={features}",
        f"--dataset_dir={tmp_path / name}",
        "--max_reject_fraction=0.1",
        *(f"--beam_option={option}" for option in options),
    ]


MODULE = ["-m", "pipeline"]
# What the installed console script does.
SCRIPT = ["-c", "import sys; from pipeline.app import console_main; console_main()"]
# As in a notebook: the code has no file, and its module is __main__.
EXEC = [
    "-c",
    "import sys; exec(compile('from pipeline import app\\n"
    "code = app.main(sys.argv[1:])', '<cell>', 'exec')); sys.exit(code)",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [MODULE, SCRIPT, EXEC], ids=["module", "script", "exec"]
)
def test_ways_to_start(tmp_path, features, how):
    path = WRITERS["csv"](tmp_path / "data.csv", table(300))
    preprocess(tmp_path / "here", path, features, max_reject_fraction=0.1)
    expected = sorted(map(repr, all_values(tmp_path / "here")))
    for name, options in (("memory", ()), ("workers", WORKERS)):
        command = _command(tmp_path, path, features, name, options)
        done = subprocess.run(
            [sys.executable, *how, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert sorted(map(repr, all_values(tmp_path / name))) == expected


@pytest.mark.slow
def test_two_workers_and_pieces_give_the_same_order(tmp_path, features):
    path = WRITERS["csv"](tmp_path / "data.csv", table(50_000, "x" * 200))
    assert path.stat().st_size > 8 << 20
    settings = {"max_reject_fraction": 0.1}
    preprocess(tmp_path / "one", path, features, **settings)
    preprocess(tmp_path / "two", path, features, beam_options=WORKERS, **settings)
    assert len(list((tmp_path / "two").glob("train-*"))) > 1
    assert records(tmp_path / "one") == records(tmp_path / "two")
    one, two = (tmp_path / d / "rejects.jsonl" for d in ("one", "two"))
    assert one.read_text() == two.read_text()
