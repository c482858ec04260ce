"""TFRecord: kinds that differ, damage that is named and counted, no TensorFlow early."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers_formats import example, write_records

from pipeline.compat import tf
from pipeline.preprocess import typed
from pipeline.preprocess.sources import detect, example_message, record_framing
from pipeline.preprocess.sources.base import WHOLE
from pipeline.preprocess.sources.tfrecord import TFRecordSource
from pipeline.types import Column, ColumnType, ExitCode, UserError

ROOT = Path(__file__).parents[4]
INT = Column("i", ColumnType.INT, ("", "-1"), 0)
FLOAT = Column("f", ColumnType.FLOAT, (), 0)
STRING = Column("s", ColumnType.STRING, ("", "NA"), "x")
COLUMNS = (INT, FLOAT, STRING)


def read(path, columns=COLUMNS, skip=False):
    rows, rejects, losses, count = [], [], [], 0
    source = TFRecordSource(str(path), skip)
    for raw in source.read(WHOLE, [c.name for c in columns]):
        count += raw.rows_read
        batch, bad = typed.convert(raw, columns)
        values = [tuple(row.values()) for row in batch.table.to_pylist()]
        rows += zip(batch.lines.tolist(), values, strict=True)
        both = sorted((*raw.rejects, *bad), key=lambda r: r.line)
        rejects += [(r.line, r.column, r.reason, r.text) for r in both]
        losses += [raw.loss] if raw.loss else []
    assert count == len(rows) + len(rejects)
    return rows, rejects, losses


def test_values_and_missing_ones(tmp_path):
    rows = [
        {"i": 2**63 - 1, "f": 0.5, "s": b"\xff\0", "other": [1, 2]},
        {},
        {"i": -1, "f": [], "s": "NA"},
        {"i": 3, "s": ""},
    ]
    path = write_records(tmp_path / "a", [example(row) for row in rows])
    found, rejects, losses = read(path)
    assert [values for _, values in found] == [
        (2**63 - 1, 0.5, b"\xff\0"),
        (None, None, None),
        (None, None, None),
        (3, None, None),
    ]
    assert [line for line, _ in found] == [1, 2, 3, 4]
    assert not rejects and not losses


def test_a_lone_wrong_record_is_one_reject(tmp_path):
    good = {"i": 1, "f": 0.5, "s": "x"}
    wrong = [
        ({"i": "many", "f": 0.5, "s": "é"}, "i", "'many' is not a whole number"),
        ({"i": [1, 2, 3], "s": "y"}, "i", "column i has 3 values"),
        ({"i": 1.5}, "i", "1.5 is not a whole number"),
        ({"f": float("nan")}, "f", "nan is not a finite number"),
        ({"f": "x"}, "f", "'x' is not a number"),
    ]
    records = []
    for row, _, _ in wrong:
        records += [example(good), example(row)]
    records += [b"no example \xff", example({"i": "8", "f": 3, "s": 5})]
    found, rejects, _ = read(write_records(tmp_path / "a", records))
    assert [line for line, _ in found] == [1, 3, 5, 7, 9, 12]
    assert found[0][1] == (1, 0.5, b"x") and found[-1][1] == (8, 3.0, b"5")
    for number, ((row, column, reason), reject) in enumerate(
        zip(wrong, rejects, strict=False), 1
    ):
        assert reject[:2] == (2 * number, column)
        assert reason in reject[2]
        if number < 4:
            assert json.loads(reject[3]) == row
    assert rejects[-1] == (11, None, "is no tf.Example", b"no example \xff")


def test_the_kind_is_that_of_the_first_record_that_has_it(tmp_path):
    records = [example({})] * 5000 + [example({"i": 1.0, "s": "x"})]
    found, rejects, _ = read(write_records(tmp_path / "a", records))
    assert len(found) == 5001 and found[-1] == (5001, (1, None, b"x"))
    assert not rejects


def damaged(tmp_path, name, change, compress=False):
    records = [example({"i": i, "s": "x" * 50}) for i in range(100)]
    data = write_records(tmp_path / "whole", records).read_bytes()
    data = change(gzip.compress(data) if compress else data)
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("change", "compress", "good", "offset"),
    [
        # A record takes 81 to 82 bytes here.
        (lambda data: data[:-7], False, 99, None),
        (lambda data: data[: len(data) // 100 * 50 + 3], False, 50, None),
        (lambda data: data + b"12345", False, 100, None),
        (lambda data: flip(data, 150), False, 1, None),
        (lambda data: flip(data, 0), False, 0, 0),
        (lambda data: data[:5], False, 0, 0),
        (lambda data: data[:-4], True, 100, None),
        (lambda data: data[: len(data) // 2], True, None, None),
    ],
)
def test_damage_is_named_or_reported_as_lost(tmp_path, change, compress, good, offset):
    path = damaged(tmp_path, "part-3.tfrecord", change, compress)
    with pytest.raises(
        UserError, match="part-3.tfrecord: record .* byte .*cut off"
    ) as e:
        read(path, [INT, STRING])
    assert e.value.exit_code is ExitCode.BAD_DATA
    assert "--skip_bad_records" in str(e.value) and "\n" not in str(e.value)
    found, rejects, (loss,) = read(path, [INT, STRING], skip=True)
    assert not rejects
    assert [values[0] for _, values in found] == list(range(len(found)))
    assert loss.path == str(path) and loss.record == len(found) + 1
    if good is not None:
        assert len(found) == good
    if offset is not None:
        assert f"byte {offset}" in loss.reason


def test_header_needs_no_tensorflow(tmp_path):
    records = [example({"b": 1}), example({"a": "x"})]
    for name in ("a.tfrecord", "b.gz"):
        path = write_records(tmp_path / name, records)
        header = TFRecordSource(str(path)).header()
        assert header.names == ("b", "a") and not header.complete
        code = (
            "import sys; from pipeline.preprocess.sources import detect, tfrecord;"
            f"print(detect.format_of({str(path)!r}));"
            f"print(tfrecord.TFRecordSource({str(path)!r}).header().names);"
            "print('tensorflow' in sys.modules, 'apache_beam' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
        )
        assert done.stdout == "tfrecord\n('b', 'a')\nFalse False\n", done.stderr
    path = write_records(tmp_path / "other", [b"\xff\xff no example"])
    with pytest.raises(UserError, match="no tf.Examples"):
        TFRecordSource(str(path)).header()


def test_the_message_is_that_of_tensorflow():
    record = example({"i": [1, -5], "f": 0.5, "s": [b"\xff", b""], "none": []})
    assert example_message.parse(record) == {
        "i": ("int64", [1, -5]),
        "f": ("float", [0.5]),
        "s": ("bytes", [b"\xff", b""]),
    }
    assert example_message.parse(b"\xff\xff") is None
    assert example_message.parse(tf.train.Example().SerializeToString()) == {}


def test_recognised_by_content(tmp_path):
    for count in (1, 3):
        path = write_records(tmp_path / "x", [example({"i": 300})] * count)
        assert record_framing.is_header(path.read_bytes())
        assert detect.format_of(str(path)) == "tfrecord"
        path = write_records(tmp_path / "train.gz", [example({"i": 1})] * count)
        path = path.rename(tmp_path / "y")
        assert detect.format_of(str(path)) == "tfrecord"
    assert not record_framing.is_header(b"age,income\n1,2\n")
    assert not record_framing.is_header(b"")
