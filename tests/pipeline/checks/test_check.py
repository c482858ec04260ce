"""The check command and --schema on small real datasets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2

from pipeline import app, dataset
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import schema, stage
from pipeline.types import ColumnType, ExitCode, UserError

DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
split: {by: time, column: day, boundaries: {eval: 2024-01-21, test: 2024-01-26}}
columns:
  age: {type: int, min: 0, max: 99, out_of_range: clip}
  price: {type: float, default: 0, min_fraction: 0.5}
  kind: {type: string, drift: 0.25}
  day: {type: string}
  id: {type: int}
  y: {type: string}
features:
  age: {kind: numeric}
  price: {kind: numeric}
  kind: {kind: vocabulary}
  id: {kind: identity, buckets: 10}
"""


def write_rows(path: Path, seed: int, rows=300, kinds="abc", shift=0, missing=0.1):
    draw = random.Random(seed)
    lines = ["age,price,kind,day,id,y"]
    for _ in range(rows):
        price = "" if draw.random() < missing else f"{draw.gauss(shift, 1):.3f}"
        lines.append(
            f"{draw.randint(-5, 120)},{price},{draw.choice(kinds)},"
            f"2024-01-{draw.randint(1, 31):02d},{draw.randint(-2, 12)},"
            f"{draw.choice(['no', 'yes'])}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def preprocess(tmp, name, declaration=DECLARATION, schema_path=None, **rows):
    features = tmp / f"{name}.yaml"
    features.write_text(declaration, encoding="utf-8")
    csv = write_rows(tmp / f"{name}.csv", **rows)
    flags = DataFlags(str(csv), str(features), None, 0.9, 64, ())
    plan = stage.plan(flags, schema_path and str(schema_path))
    directory = tmp / name
    stage.run(str(directory), plan, Console(-1))
    return directory


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("check")
    return {
        "old": preprocess(tmp, "old", seed=1),
        "same": preprocess(tmp, "same", seed=2),
        "new": preprocess(
            tmp,
            "new",
            DECLARATION.replace("  id: {type: int}\n", "").replace(
                "  id: {kind: identity, buckets: 10}\n", ""
            ),
            seed=3,
            rows=900,
            kinds="aadd",
            shift=3,
            missing=0.7,
        ),
    }


def check(directory, *flags):
    return app.main(["check", f"--dataset_dir={directory}", *map(str, flags)])


def test_a_dataset_like_the_earlier_one(datasets, capsys):
    assert check(datasets["same"], f"--against={datasets['old']}") == ExitCode.OK
    out = capsys.readouterr().out
    assert "no anomalies" in out
    assert "limit 0.25   L-infinity" in out


def test_a_changed_dataset(datasets, capsys, tmp_path):
    flags = f"--against={datasets['old']}"
    outputs = [tmp_path / "report.json", tmp_path / "report.pbtxt"]
    for output in outputs:
        code = check(datasets["new"], flags, f"--output={output}")
        assert code == ExitCode.ANOMALIES == 6
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 2
    assert "column price: Jensen-Shannon distance" in captured.out
    found = {
        (a["column"], a["kind"])
        for a in json.loads(outputs[0].read_text())["anomalies"]
    }
    assert found == {
        ("price", "FEATURE_TYPE_LOW_FRACTION_PRESENT"),
        ("price", "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH"),
        ("kind", "COMPARATOR_L_INFTY_HIGH"),
        ("id", "SCHEMA_MISSING_COLUMN"),
        (None, "COMPARATOR_HIGH_NUM_EXAMPLES"),
    }
    proto = text_format.Parse(outputs[1].read_text(), anomalies_pb2.Anomalies())
    assert set(proto.anomaly_info) == {"price", "kind", "id"}
    assert len(proto.anomaly_info["price"].reason) == 2
    reason = proto.dataset_anomaly_info.reason[0]
    assert reason.type == anomalies_pb2.AnomalyInfo.COMPARATOR_HIGH_NUM_EXAMPLES


def test_thresholds_by_flag_and_by_column(datasets):
    flags = (f"--against={datasets['old']}", "--drift_threshold=0")
    assert check(datasets["same"], *flags) == ExitCode.ANOMALIES
    assert check(datasets["old"], *flags) == ExitCode.OK


def test_against_an_edited_schema(datasets, tmp_path, capsys):
    text = (datasets["old"] / dataset.SCHEMA_FILE).read_text()
    path = tmp_path / "schema.pbtxt"
    path.write_text(text)
    assert check(datasets["old"], f"--schema={path}") == ExitCode.OK
    edited = text.replace("max: 99", "max: 50").replace('"price"', '"cost"')
    edited = edited.replace(
        '  name: "kind"', '  name: "kind" string_domain {value: "a"}'
    )
    path.write_text(edited)
    assert check(datasets["old"], f"--schema={path}") == ExitCode.ANOMALIES
    out = capsys.readouterr().out
    for line in (
        "column age: its highest value 99 is above the schema's 50",
        "column cost: the dataset has no such column",
        "column price: the schema has no such column",
        "rows have values outside the schema's domain: '",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--against=nowhere"], "nowhere does not exist"),
        (["--output=r.txt"], "must end in .json"),
        (["--schema=nowhere"], "cannot read --schema"),
        (["--drift_threshold=2"], "drift_threshold"),
    ],
)
def test_mistakes_are_one_line(datasets, capsys, flags, message):
    assert check(datasets["old"], *flags) == ExitCode.USER_ERROR
    error = capsys.readouterr().err
    assert message in error and error.count("\n") <= 2


def test_a_dataset_without_accumulators(datasets, tmp_path, capsys):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in datasets["old"].iterdir():
        if path.is_file() and path.name != dataset.ACCUMULATORS_FILE:
            (copy / path.name).write_bytes(path.read_bytes())
    assert check(copy) == ExitCode.BAD_DATA
    assert "run preprocess again" in capsys.readouterr().err


def test_ids_out_of_range_are_counted(datasets):
    columns = json.loads((datasets["old"] / dataset.STATISTICS_FILE).read_text())
    rows = (datasets["old"].parent / "old.csv").read_text().splitlines()[1:]
    ids = [int(row.split(",")[4]) for row in rows]
    outside = sum(not 0 <= i < 10 for i in ids)
    assert outside == sum(split["id"]["outside"] for split in columns.values()) > 0


def test_split_by_time_and_clipping(datasets):
    results = dataset.open_dataset(str(datasets["old"])).manifest.results
    rows = (datasets["old"].parent / "old.csv").read_text().splitlines()[1:]
    days = [int(row.split(",")[3][-2:]) for row in rows]
    assert results["rows_written"] == {
        "train": sum(d < 21 for d in days),
        "eval": sum(21 <= d < 26 for d in days),
        "test": sum(d >= 26 for d in days),
    }
    columns = json.loads((datasets["old"] / dataset.STATISTICS_FILE).read_text())
    assert columns["train"]["age"]["numbers"]["min"] == 0
    assert columns["train"]["age"]["numbers"]["max"] == 99


def test_preprocess_enforces_a_schema(tmp_path, datasets):
    text = (datasets["old"] / dataset.SCHEMA_FILE).read_text()
    path = tmp_path / "edited.pbtxt"
    path.write_text(
        text.replace('name: "kind"', 'name: "kind" string_domain {value: ["a", "b"]}')
        .replace('name: "price"', 'name: "price" float_domain {max: 0.5}')
        .replace("min_fraction: 0.5", "min_fraction: 1")
    )
    directory = preprocess(tmp_path, "d", schema_path=path, seed=1)
    found = dataset.open_dataset(str(directory)).declaration.columns
    assert found["kind"].values == ("a", "b")
    assert (found["price"].required, found["price"].max) == (True, 0.5)
    rejects = [
        json.loads(line)
        for line in (directory / dataset.REJECTS_FILE).read_text().splitlines()
    ]
    reasons = {(r["column"], r["reason"].split(" ", 3)[3]) for r in rejects}
    assert ("kind", "is not allowed; allowed: 'a', 'b'") in reasons
    assert ("price", "required and has no value (found '')") in reasons
    # What was enforced is written again, so the schema round-trips.
    again = schema.read(str(directory / dataset.SCHEMA_FILE))
    wanted = schema.read(str(path))
    assert again == wanted


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: INT", "type: FLOAT", "feature age: int_domain does not go with type"),
        ('name: "kind"', 'name: "kinds"', "feature kinds: no such column; declared"),
        ("type: BYTES", "type: INT", "feature kind: type int, but the column is decl"),
        ("max: 99", "max: -1", "feature age: min 0 is above max -1"),
        ("max: 99", "max: x", r"schema.pbtxt:\d+:\d+: not a schema in protobuf text"),
        ("max: 99", "maxi: 9", r"pbtxt:\d+:\d+: .* no field named .maxi"),
        ('value: "no"', 'value: "maybe"', "'maybe' is not one of the label's classes"),
        ("type: INT", "type: STRUCT", "type STRUCT is unknown"),
        ("int_domain", "bool_domain {} #", "line|bool_domain|pbtxt"),
    ],
)  # fmt: skip
def test_contradictions_name_file_and_feature(datasets, tmp_path, old, new, message):
    opened = dataset.open_dataset(str(datasets["old"]))
    text = (datasets["old"] / dataset.SCHEMA_FILE).read_text()
    assert old in text
    path = tmp_path / "schema.pbtxt"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=message) as raised:
        schema.apply(opened.declaration, str(path))
    assert "schema.pbtxt" in str(raised.value)


def test_named_domains_and_drift_are_read(tmp_path):
    path = tmp_path / "s.pbtxt"
    path.write_text(
        'string_domain {name: "d" value: "x"} feature {name: "a" domain: "d"'
        " drift_comparator {infinity_norm {threshold: 0.3}}}"
    )
    found = schema.read(str(path))["a"]
    assert (found.type, found.values, found.drift) == (ColumnType.STRING, ("x",), 0.3)
