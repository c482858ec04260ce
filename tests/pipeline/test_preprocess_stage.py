"""The preprocess stage on real files, through real Beam runs."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers_stage import data_flags

from input_fns import records
from pipeline import dataset as datasets
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import constants_files, stage
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[2]
CENSUS = ROOT / "examples" / "census"
DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
split: {fractions: {train: 0.6, eval: 0.2, test: 0.2}, salt: s}
columns:
  x: {type: float, missing: [NA], default: 0.5}
  n: {type: int}
  c: {type: string, missing: ["?"], default: other}
  y: {type: string}
features:
  x: {kind: numeric}
  n: {kind: numeric, scale: minmax}
  n_bucket: {kind: bucketized, column: n, quantiles: 4}
  c: {kind: vocabulary}
"""


def _run(directory: Path, settings: DataFlags):
    return stage.run(str(directory), stage.plan(settings), Console(-1))


def _rows(count: int) -> list[list[str]]:
    colours = ["red", "green", "?", "blue, dark", 'with "quotes"']
    return [
        [
            "NA" if i % 7 == 0 else f"{i / 4}",
            str(i),
            colours[i % 5],
            "yes" if i % 3 else "no",
        ]
        for i in range(count)
    ]


def _write(path: Path, rows: list[list[str]], line_end: str = "\n") -> Path:
    with open(path, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator=line_end)
        writer.writerow(["x", "n", "c", "y"])
        writer.writerows(rows)
    return path


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "features.yaml"
    path.write_text(DECLARATION, encoding="utf-8")
    return path


def _examples(directory: Path, split: str) -> list[tf.train.Example]:
    dataset = datasets.open_dataset(str(directory))
    shards = dataset.splits[split]
    serialized = records.serialized_rows(
        records.Records(shards.files, shards.rows, shards.form),
        tuple(dataset.declaration.columns.values()),
    )
    return [tf.train.Example.FromString(row) for row in serialized]


def _all_examples(directory: Path) -> dict[int, tuple[str, tf.train.Example]]:
    found = {}
    for split in ("train", "eval", "test"):
        for example in _examples(directory, split):
            number = example.features.feature["n"].int64_list.value[0]
            assert number not in found
            found[number] = (split, example)
    return found


@pytest.mark.parametrize("form", ["rows", "blocks"])
def test_every_row_is_in_one_split_with_its_values(tmp_path, features, form):
    rows = _rows(600)
    path = _write(tmp_path / "a.csv", rows)
    manifest = _run(tmp_path / "d", data_flags(path, features, record_form=form))
    found = _all_examples(tmp_path / "d")
    assert sorted(found) == list(range(600))
    for x, n, c, y in rows:
        values = found[int(n)][1].features.feature
        if x == "NA":
            assert "x" not in values
        else:
            assert values["x"].float_list.value[0] == pytest.approx(float(x))
        if c == "?":
            assert "c" not in values
        else:
            assert values["c"].bytes_list.value[0] == c.encode()
        assert values["y"].bytes_list.value[0] == y.encode()
    results = manifest.results
    assert results["rows_read"] == 600 and results["rows_rejected"] == 0
    assert sum(results["rows_written"].values()) == 600
    assert 300 < results["rows_written"]["train"] < 420
    assert results["missing_values"] == {"x": 86, "c": 120}


def test_constants_come_from_the_training_split_alone(tmp_path, features):
    _run(tmp_path / "d", data_flags(_write(tmp_path / "a.csv", _rows(600)), features))
    train = [e.features.feature for e in _examples(tmp_path / "d", "train")]
    constants = constants_files.read_constants(str(tmp_path / "d"))
    x = [f["x"].float_list.value[0] for f in train if "x" in f]
    mean = sum(x) / len(x)
    deviation = (sum((v - mean) ** 2 for v in x) / len(x)) ** 0.5
    assert constants.scalings["x"].shift == pytest.approx(mean)
    assert constants.scalings["x"].factor == pytest.approx(1 / deviation)
    n = [f["n"].int64_list.value[0] for f in train]
    assert constants.scalings["n"].shift == min(n)
    assert constants.scalings["n"].factor == pytest.approx(1 / (max(n) - min(n)))
    words = [f["c"].bytes_list.value[0] if "c" in f else b"other" for f in train]
    assert constants.vocabularies["c"] == tuple(
        sorted(set(words), key=lambda word: (-words.count(word), word))
    )
    cuts = constants.boundaries["n_bucket"]
    shares = [sum(v < cut for v in n) / len(n) for cut in cuts]
    assert shares == pytest.approx([0.25, 0.5, 0.75], abs=0.01)


def test_the_split_of_a_row_depends_on_the_row_alone(tmp_path, features):
    rows = _rows(400)
    _run(tmp_path / "one", data_flags(_write(tmp_path / "a.csv", rows), features))
    _write(tmp_path / "b1.csv", rows[:150:-1], "\r\n")
    _write(tmp_path / "b2.csv", rows[:151])
    _run(tmp_path / "two", data_flags(tmp_path / "b*.csv", features))
    one, two = _all_examples(tmp_path / "one"), _all_examples(tmp_path / "two")
    assert one == two


def test_byte_order_mark_and_crlf_change_nothing(tmp_path, features):
    plain = _write(tmp_path / "plain.csv", _rows(300))
    twin = _write(tmp_path / "twin.csv", _rows(300), "\r\n")
    twin.write_bytes(b"\xef\xbb\xbf" + twin.read_bytes())
    _run(tmp_path / "one", data_flags(plain, features))
    _run(tmp_path / "two", data_flags(twin, features))
    assert _all_examples(tmp_path / "one") == _all_examples(tmp_path / "two")


def test_rejects_are_kept_in_full_and_counted(tmp_path, features):
    rows = _rows(300)
    rows[9][1] = "12.5"
    rows[19][3] = "perhaps"
    rows[29][0] = "1e400"
    path = _write(tmp_path / "a.csv", rows)
    with open(path, "a", encoding="utf-8") as f:
        f.write("1,2\n")
    manifest = _run(
        tmp_path / "d", data_flags(path, features, max_reject_fraction=0.02)
    )
    assert manifest.results["rows_rejected"] == 4
    assert manifest.results["rows_read"] == 301
    assert sum(manifest.results["rows_written"].values()) == 297
    lines = (tmp_path / "d" / "rejects.jsonl").read_text().splitlines()
    rejects = [json.loads(line) for line in lines]
    assert [(r["line"], r["column"]) for r in rejects] == [
        (11, "n"),
        (21, "y"),
        (31, "x"),
        (302, None),
    ]
    assert "perhaps" in rejects[1]["reason"] and "yes" in rejects[1]["reason"]
    assert rejects[3]["text"] == "1,2"
    assert all(r["file"] == str(path) and r["reason"] for r in rejects)


def test_too_many_rejects_fail_name_the_column_and_keep_the_rows(tmp_path, features):
    good = _write(tmp_path / "good.csv", _rows(100))
    before = _run(tmp_path / "d", data_flags(good, features))
    rows = _rows(100)
    for row in rows[:5]:
        row[1] = "many"
    with pytest.raises(
        UserError, match="column n: .*max_reject_fraction|most"
    ) as caught:
        _run(tmp_path / "d", data_flags(_write(tmp_path / "bad.csv", rows), features))
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert "column n" in str(caught.value)
    kept = (tmp_path / "d.rejects.jsonl").read_text().splitlines()
    assert len(kept) == 5
    assert datasets.open_dataset(str(tmp_path / "d")).manifest == before
    assert not [p for p in os.listdir(tmp_path) if ".tmp-" in p]


def test_a_finished_dataset_is_reused_until_something_changes(tmp_path, features):
    path = _write(tmp_path / "a.csv", _rows(100))
    first = _run(tmp_path / "d", data_flags(path, features))
    stamp = os.stat(tmp_path / "d" / "manifest.json").st_mtime_ns
    assert _run(tmp_path / "d", data_flags(path, features)) == first
    assert os.stat(tmp_path / "d" / "manifest.json").st_mtime_ns == stamp
    _write(path, _rows(101))
    assert _run(tmp_path / "d", data_flags(path, features)).results["rows_read"] == 101
    features.write_text(DECLARATION.replace("salt: s", "salt: t"))
    changed = _run(tmp_path / "d", data_flags(path, features))
    assert changed.fingerprint not in (first.fingerprint,)
    assert changed.results["rows_read"] == 101


def test_a_declaration_is_inferred_and_written_for_the_user(tmp_path):
    path = _write(tmp_path / "a.csv", _rows(300))
    settings = data_flags(path, None, label="y")
    manifest = _run(tmp_path / "d", settings)
    declaration = datasets.open_dataset(str(tmp_path / "d")).declaration
    assert declaration.label.classes == ("no", "yes")
    assert manifest.results["declaration_inferred"]
    # The written file, given as it is, makes the same dataset.
    written = tmp_path / "d" / "features.yaml"
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(written.read_bytes())
    _run(tmp_path / "e", data_flags(path, copy))
    assert _all_examples(tmp_path / "d") == _all_examples(tmp_path / "e")


def test_a_file_cut_off_in_its_compression_fails_by_name(tmp_path, features):
    whole = gzip.compress(_write(tmp_path / "a.csv", _rows(5000)).read_bytes())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cut.csv.gz") as caught:
        _run(tmp_path / "d", data_flags(path, features))
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert not (tmp_path / "d").exists()


def test_no_training_rows_is_a_clear_error(tmp_path, features):
    path = _write(tmp_path / "a.csv", [])
    with pytest.raises(UserError, match="train split has no rows"):
        _run(tmp_path / "d", data_flags(path, features))


@pytest.mark.parametrize("when", ["first", "replacing"])
def test_killed_runs_leave_the_old_dataset_or_none(tmp_path, features, when):
    path = _write(tmp_path / "a.csv", _rows(200))
    before = None
    if when == "replacing":
        before = _run(tmp_path / "d", data_flags(path, features))
        _write(path, _rows(201))
    command = [
        sys.executable,
        "-m",
        "pipeline",
        "preprocess",
        f"--input={path}",
        f"--features={features}",
        f"--dataset_dir={tmp_path / 'd'}",
    ]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    # It says so when it begins to write.
    assert "preprocess: 1 file(s)" in child.stderr.readline()
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)
    child.stderr.close()
    if before is None:
        with pytest.raises(UserError, match="does not exist"):
            datasets.open_dataset(str(tmp_path / "d"))
    else:
        assert datasets.open_dataset(str(tmp_path / "d")).manifest == before
    after = _run(tmp_path / "d", data_flags(path, features))
    assert after.results["rows_read"] == (201 if before else 200)
    assert not [name for name in os.listdir(tmp_path) if ".tmp-" in name]


def test_the_census_is_read_whole(tmp_path):
    manifest = _run(
        tmp_path / "d",
        data_flags(CENSUS / "adult.csv.gz", CENSUS / "features.yaml"),
    )
    results = manifest.results
    assert results["rows_read"] == 48_842
    assert sum(results["rows_written"].values()) + results["rows_rejected"] == 48_842
    assert results["missing_values"] == {
        "workclass": 2_799,
        "occupation": 2_809,
        "native-country": 857,
    }


def test_a_column_named_as_the_missing_rows_of_another_needs_records_of_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,x:missing\n1,2\n")
    features = tmp_path / "features.yaml"
    features.write_text(
        "columns: {x: {type: int}, 'x:missing': {type: int}}\n"
        "features: {x: {kind: numeric}}\n"
    )
    with pytest.raises(UserError, match="x and x:missing: .*--record_form=rows"):
        stage.plan(data_flags(path, features))
    stage.plan(data_flags(path, features, record_form="rows"))
