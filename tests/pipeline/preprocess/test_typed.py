"""Raw bytes to typed values: markers, limits, labels, rejects."""

import math
import pathlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess import number_text
from pipeline.preprocess.csv_source import read_batches, read_header
from pipeline.preprocess.sources.base import LineTexts, RawBatch
from pipeline.preprocess.typed import convert
from pipeline.types import Column, ColumnType, Label

CENSUS = str(pathlib.Path(__file__).parents[3] / "examples/census/adult.csv.gz")
INT, FLOAT, STRING = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING


def raw_batch(**columns):
    """A batch of the given lists of bytes, one row a line from line 2 on."""
    rows = [b",".join(row) for row in zip(*columns.values(), strict=True)]
    starts = np.cumsum([0] + [len(row) + 1 for row in rows])
    return RawBatch(
        path="data.csv",
        table=pa.record_batch(
            [pa.array(values, pa.binary()) for values in columns.values()],
            list(columns),
        ),
        lines=np.arange(2, 2 + len(rows)),
        rejects=(),
        rows_read=len(rows),
        texts=LineTexts(b"\n".join(rows), starts[:-1], starts[1:] - 1),
    )


def convert_one(values, column, label=None):
    typed, rejects = convert(raw_batch(**{column.name: values}), [column], label)
    return typed.table.column(0).to_pylist(), [reject.reason for reject in rejects]


class TestMissing:
    VALUES = [b"", b"NA", b" NA", b"NULL", b"nan", b"1,000", b"7", b"  "]
    MARKERS = ("", "NA", "NULL", "nan")

    @pytest.mark.parametrize("kind", [INT, FLOAT])
    def test_optional_number(self, kind):
        column = Column("pay", kind, self.MARKERS, default=0)
        values, reasons = convert_one(self.VALUES, column)
        assert values == [None] * 5 + [7, None]
        assert len(reasons) == 1
        assert reasons[0].startswith("column pay: '1,000' is not a ")

    def test_required_number(self):
        raw = raw_batch(id=[b"x%d" % i for i in range(8)], pay=self.VALUES)
        columns = [Column("id", STRING), Column("pay", FLOAT, self.MARKERS)]
        typed, rejects = convert(raw, columns)
        assert typed.table.to_pylist() == [{"id": b"x6", "pay": 7}]
        assert typed.lines.tolist() == [8]
        assert typed.path == "data.csv"
        assert [reject.line for reject in rejects] == [2, 3, 4, 5, 6, 7, 9]
        assert {(reject.path, reject.column) for reject in rejects} == {
            ("data.csv", "pay")
        }
        expected = "column pay is required and has no value (found ' NA')"
        assert rejects[2].reason == expected
        assert rejects[2].text == b"x2, NA"
        assert rejects[5].text == b"x5,1,000"

    def test_undeclared_marker_is_no_silent_zero(self):
        column = Column("pay", INT, default=0)
        values, reasons = convert_one([b"NULL", b""], column)
        assert values == [None]
        assert reasons == ["column pay: 'NULL' is not a whole number"]

    def test_empty_field_is_always_missing(self):
        column = Column("pay", INT, missing=("?",), default=0)
        assert convert_one([b"", b"?"], column) == ([None, None], [])

    def test_strings(self):
        column = Column("job", STRING, ("?",), default="?")
        values = [b" ?", b"", b" a ", b"\xff\x00", b"NA"]
        assert convert_one(values, column)[0] == [
            None,
            None,
            b" a ",
            b"\xff\x00",
            b"NA",
        ]
        values, reasons = convert_one([b" ", b"x"], Column("job", STRING))
        assert values == [b"x"]
        assert "found ' '" in reasons[0]


class TestInt:
    def test_limits(self):
        good = [
            b"9720798423",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"+5",
            b" 007\t",
            b"0" * 5000 + b"1",
            b"-0",
        ]
        bad = [b"9223372036854775808", b"-9223372036854775809", b"9" * 5000]
        values, reasons = convert_one(good + bad, Column("id", INT))
        assert values == [9720798423, 2**63 - 1, -(2**63), 5, 7, 1, 0]
        assert len(reasons) == 3
        assert reasons[0] == (
            "column id: '9223372036854775808' does not fit in 64 bits"
        )
        assert all(len(reason) < 120 for reason in reasons)

    @pytest.mark.parametrize(
        "text",
        [b"1.5", b"1e3", b"0x1F", b"1_000", b"1,000", b"--1", b"+", b"1 2", b"\xff"]
        + ["٣".encode(), b"1\x00", b"nan"],
    )
    def test_no_int(self, text):
        for values in ([text], [b"1", text]):
            _, reasons = convert_one(values, Column("id", INT))
            assert len(reasons) == 1
            assert "column id: " in reasons[0]
            assert reasons[0].endswith("is not a whole number")


class TestFloat:
    def test_decimal_and_scientific(self):
        texts = [b"1.5", b" 2 ", b"+.5", b"-1.", b"1e3", b"1E-3", b"+0.1", b"0.1"]
        texts += [b"1e-400", b"3.4028234e38", b"16777217", b"-0"]
        values, reasons = convert_one(texts, Column("x", FLOAT))
        assert not reasons
        assert values == [float(np.float32(text.decode())) for text in texts]

    @pytest.mark.parametrize(
        "text, reason",
        [
            (b"1e400", "is too large for a 32-bit float"),
            (b"-1e39", "is too large for a 32-bit float"),
            (b"+1e39", "is too large for a 32-bit float"),
            (b"nan", "is not a finite number"),
            (b"-INF", "is not a finite number"),
            (b"+Infinity", "is not a finite number"),
            (b"0x1F", "is not a number"),
            (b"1,000", "is not a number"),
            (b"1_000", "is not a number"),
            (b"nan(1)", "is not a number"),
            (b"1e", "is not a number"),
            (b".", "is not a number"),
            (b"\xff", "is not a number"),
        ],
    )
    def test_no_float(self, text, reason):
        values, reasons = convert_one([b"2.5", text, b""], Column("x", FLOAT, (), 0.0))
        assert values == [2.5, None]
        assert reasons == [
            f"column x: {text.decode(errors='backslashreplace')!r} {reason}"
        ]

    def test_decimal_after_150_ints(self):
        values, reasons = convert_one([b"3"] * 150 + [b"1.5"], Column("x", FLOAT))
        assert values == [3.0] * 150 + [1.5]
        assert not reasons


class TestLabel:
    def test_strings(self):
        column = Column("income", STRING, ("", "?"))
        label = Label("income", ("<=50K", ">50K"))
        texts = [b" >50K", b"<=50K", b">50K.", b"?", b"", b">50k"]
        values, reasons = convert_one(texts, column, label)
        assert values == [b">50K", b"<=50K"]
        assert reasons[0] == (
            "column income: '>50K.' is not one of the classes '<=50K', '>50K'"
        )
        assert reasons[1] == ("column income is required and has no value (found '?')")
        assert len(reasons) == 4

    def test_default_does_not_save_a_label(self):
        column = Column("income", STRING, default=">50K")
        values, reasons = convert_one([b""], column, Label("income", ("a", ">50K")))
        assert values == []
        assert "is required and has no value" in reasons[0]

    def test_ints(self):
        column, label = Column("y", INT), Label("y", ("0", "1"))
        values, reasons = convert_one([b"0", b"+1", b"01", b"2", b"x"], column, label)
        assert values == [0, 1, 1]
        assert reasons == [
            "column y: '2' is not one of the classes '0', '1'",
            "column y: 'x' is not a whole number",
        ]

    def test_floats(self):
        column, label = Column("y", FLOAT), Label("y", ("0", "1"))
        values, reasons = convert_one([b"0.0", b"1", b"0.5"], column, label)
        assert values == [0, 1]
        assert len(reasons) == 1

    def test_regression(self):
        column = Column("y", FLOAT)
        values, reasons = convert_one([b"1.5", b"nan", b""], column, Label("y"))
        assert values == [1.5]
        assert len(reasons) == 2

    def test_many_classes_are_not_all_shown(self):
        label = Label("y", tuple(str(i) for i in range(100)))
        _, reasons = convert_one([b"100"], Column("y", INT), label)
        assert reasons[0].endswith("'8', '9', ...")


def test_first_failing_column_in_declared_order():
    raw = raw_batch(a=[b"x", b"1", b"1"], b=[b"", b"y", b"2"])
    for names in ("ab", "ba"):
        typed, rejects = convert(raw, [Column(name, INT) for name in names])
        assert typed.table.schema.names == list(names)
        assert typed.table.to_pylist() == [{"a": 1, "b": 2}]
        assert [(r.line, r.column) for r in rejects] == [(2, names[0]), (3, "b")]


def test_types_and_empty_batch():
    columns = [Column("i", INT), Column("f", FLOAT), Column("s", STRING)]
    for rows in ([b"1"], []):
        typed, rejects = convert(raw_batch(i=rows, f=rows, s=rows), columns)
        assert typed.table.schema.types == [pa.int64(), pa.float32(), pa.binary()]
        assert not rejects


def test_sliced_batch():
    raw = raw_batch(i=[b"0x1", b"5", b"+6", b"z"])
    table = raw.table.slice(1, 2)
    sliced = RawBatch(
        raw.path,
        table,
        raw.lines[1:3],
        (),
        2,
        LineTexts(raw.texts.chunk, raw.texts.starts[1:3], raw.texts.ends[1:3]),
    )
    typed, rejects = convert(sliced, [Column("i", INT)])
    assert typed.table.column(0).to_pylist() == [5, 6]
    assert not rejects


def test_census():
    names = read_header(CENSUS)
    ints = {"age", "fnlwgt", "educational-num", "capital-gain", "capital-loss"}
    ints.add("hours-per-week")
    columns = [
        Column(
            name, INT if name in ints else STRING, ("", "?"), 0 if name in ints else "?"
        )
        for name in names[:-1]
    ] + [Column("income", STRING)]
    nulls, rows = {}, 0
    for batch in read_batches(CENSUS, names):
        typed, rejects = convert(batch, columns, Label("income", ("<=50K", ">50K")))
        assert not rejects
        rows += typed.table.num_rows
        for name in names:
            nulls[name] = nulls.get(name, 0) + typed.table.column(name).null_count
    assert rows == 48842
    assert {name: count for name, count in nulls.items() if count} == {
        "workclass": 2799,
        "occupation": 2809,
        "native-country": 857,
    }


def parse_one_by_one(texts, kind):
    """As `number_text.parse`, each text in a column of its own."""
    values, failures = [], {}
    for row, text in enumerate(texts):
        column = pa.array([text], pa.binary()).view(pa.string())
        parsed, failed = number_text.parse(column, kind)
        values += parsed.to_pylist()
        if failed:
            failures[row] = failed[0]
    return values, failures


NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(str),
    st.floats(width=32).map(repr),
    st.text(alphabet="0123456789+-.eExXnaif_,", max_size=8),
).map(str.encode)


@given(st.lists(NUMBERS, max_size=8), st.sampled_from([INT, FLOAT]))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_parsing_is_exact_and_depends_on_no_neighbour(texts, kind):
    column = pa.array(texts, pa.binary()).view(pa.string())
    parsed, failures = number_text.parse(column, kind)
    assert (parsed.to_pylist(), failures) == parse_one_by_one(texts, kind)
    for row, value in enumerate(parsed.to_pylist()):
        if value is None:
            assert row in failures
        elif kind is INT:
            assert value == int(texts[row])
        else:
            exact = float(texts[row])
            assert math.isfinite(value)
            # Half a step of float32, or of its smallest numbers.
            assert abs(value - exact) <= max(abs(exact) * 2**-24, 2**-150)
