"""Parquet: typed values by the rules of text, row groups, rows in full."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.preprocess import typed
from pipeline.preprocess.sources.base import WHOLE
from pipeline.preprocess.sources.parquet import ParquetSource
from pipeline.types import Column, ColumnType, ExitCode, Label, UserError

INT, FLOAT, STRING = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING


@pytest.fixture
def convert(tmp_path):
    """Writes one column and returns its converted values and the rejects."""

    def convert_values(values, column, label=None):
        path = tmp_path / "data.parquet"
        others = pa.array([{"n": [i]} for i in range(len(values))])
        pq.write_table(pa.table({column.name: values, "other": others}), path)
        results, rejects = [], []
        for raw in ParquetSource(str(path)).read(WHOLE, [column.name], [column]):
            batch, bad = typed.convert(raw, [column], label)
            results += batch.table.column(0).to_pylist()
            rejects += bad
        return results, rejects

    return convert_values


def optional(kind, *markers):
    return Column("c", kind, ("", *markers), "x" if kind is STRING else 0)


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        (pa.array([1, None, -1], pa.int8()), optional(INT), [1, None, -1]),
        (pa.array([1, -1], pa.int32()), optional(INT, "-1", "300"), [1, None]),
        (pa.array([2**63 - 1], pa.uint64()), optional(INT), [2**63 - 1]),
        (pa.array([5.0, None, -0.0, 2.0**53]), optional(INT), [5, None, 0, 2**53]),
        (pa.array([float("nan"), 1.0]), optional(INT, "NaN"), [None, 1]),
        (pa.array([True, None, False]), optional(INT), [1, None, 0]),
        (pa.array(["7", " 8 ", None, "NA"]), optional(INT, "NA"), [7, 8, None, None]),
        (pa.nulls(2), optional(INT), [None, None]),
        (
            pa.array([0.1, None, -9.0]),
            optional(FLOAT, "-9"),
            [np.float32(0.1), None, None],
        ),
        (pa.array([0.1], pa.float32()), optional(FLOAT, "0.1"), [None]),
        (pa.array([1, 2**24 + 1]), optional(FLOAT), [1.0, 2.0**24]),
        (pa.array([1.5], pa.float16()), optional(FLOAT), [1.5]),
        (
            pa.array(["é", None, "", " x"]),
            optional(STRING),
            ["é".encode(), None, None, b" x"],
        ),
        (pa.array([b"\xff"], pa.binary()), optional(STRING), [b"\xff"]),
        (
            pa.array(["a", "NA", None]).dictionary_encode(),
            optional(STRING, "NA"),
            [b"a", None, None],
        ),
        (pa.array(["a"], pa.large_string()), optional(STRING), [b"a"]),
        (pa.array([True, False]), optional(STRING), [b"true", b"false"]),
        (pa.array([12, None]), optional(STRING), [b"12", None]),
        (pa.array([1.0, 0.25]), optional(STRING), [b"1.0", b"0.25"]),
    ],
)
def test_values(convert, values, column, expected):
    assert convert(values, column) == (expected, [])


@pytest.mark.parametrize(
    ("values", "column", "reason"),
    [
        (pa.array([2**63, 1], pa.uint64()), optional(INT), "does not fit in 64 bits"),
        (pa.array([1.5, 1]), optional(INT), "1.5 is not a whole number"),
        (pa.array([float("inf"), 1]), optional(INT), "is not a whole number"),
        (pa.array([2.0**60, 1]), optional(INT), "beyond 9007199254740992"),
        (pa.array([2.0**30, 1], pa.float32()), optional(INT), "beyond 16777216"),
        (pa.array([1e300, 1]), optional(FLOAT), "too large for a 32-bit float"),
        (pa.array([float("nan"), 1]), optional(FLOAT), "nan is not a finite number"),
        (pa.array([True, None]), optional(FLOAT), "True is not a number"),
        (
            pa.array([None, 1]),
            Column("c", INT),
            "is required and has no value (found null)",
        ),
        (pa.array([None, "1"]), Column("c", INT), "is required and has no value"),
    ],
)
def test_a_lone_wrong_value_rejects_its_row(convert, values, column, reason):
    results, rejects = convert(values, column)
    assert len(results) == 1
    (reject,) = rejects
    assert reason in reject.reason
    assert (reject.line, reject.column) == (1, "c")
    row = json.loads(reject.text)
    assert list(row) == ["c", "other"] and row["other"] == {"n": [0]}


def test_label_classes(convert):
    label = Label("c", ("0", "1"))
    for values in (
        pa.array([0, 1, 2]),
        pa.array([0.0, 1.0, 2.0]),
        pa.array(["0", "1", "2"]),
    ):
        results, rejects = convert(values, Column("c", INT), label)
        assert results == [0, 1] and [r.line for r in rejects] == [3]
        assert "is not one of the classes '0', '1'" in rejects[0].reason
    results, rejects = convert(
        pa.array([True, False, None]),
        Column("c", STRING),
        Label("c", ("false", "true")),
    )
    assert results == [b"true", b"false"] and len(rejects) == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime.datetime(2013, 6, 1)]),
        pa.array([datetime.date(2013, 6, 1)]),
        pa.array([decimal.Decimal("1.5")]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
    ],
)
def test_types_that_cannot_be_used_are_named(convert, values):
    with pytest.raises(
        UserError, match="data.parquet: column c is of type .* cannot be"
    ):
        convert(values, optional(STRING))


def test_row_groups_are_pieces_with_row_numbers(tmp_path):
    path = str(tmp_path / "data.parquet")
    pq.write_table(pa.table({"c": pa.array(range(100))}), path, row_group_size=7)
    source = ParquetSource(path)
    whole = [raw.lines.tolist() for raw in source.read(WHOLE, ["c"])]
    assert sum(whole, []) == list(range(1, 101))
    for size in (1, 100, 10**9):
        pieces = source.pieces(size)
        lines, values = [], []
        for piece in pieces:
            for raw in source.read(piece, ["c"]):
                lines += raw.lines.tolist()
                values += raw.table.column(0).to_pylist()
        assert lines == list(range(1, 101)) and values == list(range(100))
        assert [p.index for p in pieces] == list(range(len(pieces)))
    assert len(source.pieces(1)) == 15 and len(source.pieces(10**9)) == 1


def test_the_full_row_is_that_of_its_batch(tmp_path, monkeypatch):
    from pipeline.preprocess.sources import parquet

    monkeypatch.setattr(parquet, "_BATCH_ROWS", 10)
    path = str(tmp_path / "data.parquet")
    table = pa.table({"c": pa.array(range(100)), "d": pa.array(range(100, 200))})
    pq.write_table(table, path, row_group_size=35)
    for raw in ParquetSource(path).read(WHOLE, ["c"]):
        for i, line in enumerate(raw.lines.tolist()):
            assert json.loads(raw.text(i)) == {"c": line - 1, "d": line + 99}


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"c": pa.array(range(1000))}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="data.parquet") as caught:
        ParquetSource(str(path)).header()
    assert caught.value.exit_code is ExitCode.BAD_DATA
    damaged = bytearray(whole)
    damaged[4:200] = bytes(196)
    path.write_bytes(bytes(damaged))
    with pytest.raises(UserError, match="data.parquet"):
        list(ParquetSource(str(path)).read(WHOLE, ["c"]))
