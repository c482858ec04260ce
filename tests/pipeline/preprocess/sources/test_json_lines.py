"""JSON lines: exact numbers, one reject a wrong line, both parsers alike."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess import typed
from pipeline.preprocess.sources.base import WHOLE
from pipeline.preprocess.sources.json_lines import JsonLinesSource
from pipeline.types import Column, ColumnType, UserError

INT = Column("i", ColumnType.INT, ("", "NA"), 0)
FLOAT = Column("f", ColumnType.FLOAT, ("", "NA"), 0)
STRING = Column("s", ColumnType.STRING, ("", "NA"), "x")
COLUMNS = (INT, FLOAT, STRING)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("json") / "data.jsonl"


def read(path, data: bytes, columns=COLUMNS, declared=None, **limits):
    """Returns (line, values) of good rows and (line, column, reason, text) of others."""
    path.write_bytes(data)
    rows, rejects, count = [], [], 0
    declared = columns if declared is None else declared
    source = JsonLinesSource(str(path))
    for raw in source.read(WHOLE, [c.name for c in columns], declared, **limits):
        count += raw.rows_read
        batch, bad = typed.convert(raw, columns)
        values = [tuple(row.values()) for row in batch.table.to_pylist()]
        rows += zip(batch.lines.tolist(), values, strict=True)
        both = sorted((*raw.rejects, *bad), key=lambda r: r.line)
        rejects += [(r.line, r.column, r.reason, r.text) for r in both]
    assert count == len(rows) + len(rejects)
    return rows, rejects


@pytest.mark.parametrize("wrong", ["", "oops\n"])
def test_ints_are_exact_to_64_bits(path, wrong):
    numbers = [2**53 + 1, 9_720_798_423, 2**63 - 1, -(2**63)]
    text = "".join(json.dumps({"i": n}) + "\n" for n in numbers) + wrong
    rows, rejects = read(path, text.encode(), [INT])
    assert [values for _, values in rows] == [(n,) for n in numbers]
    assert len(rejects) == bool(wrong)
    for text in ("9223372036854775808", "1" * 5000):
        _, rejects = read(path, b'{"i": %s}' % text.encode(), [INT])
        assert "does not fit in 64 bits" in rejects[0][2]


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        (b'{"i": 1', None, "is not JSON"),
        (b"1,2,3", None, "is not JSON"),
        (b'{"i": 1} {"i": 2}', None, "is not JSON"),
        (b"[1]", None, "no object"),
        (b"null", None, "no object"),
        (b'{"i": 1.5}', "i", "'1.5' is not a whole number"),
        (b'{"i": 1.0}', "i", "'1.0' is not a whole number"),
        (b'{"i": "x"}', "i", "'x' is not a whole number"),
        (b'{"i": [1]}', "i", '["1"] is a list'),
        (b'{"s": {"a": 1}}', "s", "is an object"),
        (b'{"f": true}', "f", "'true' is not a number"),
        (b'{"f": 1e400}', "f", "too large for a 32-bit float"),
        (b'{"f": NaN}', "f", "is not a finite number"),
        (b'{"f": -Infinity}', "f", "is not a finite number"),
        (b'{"s": "\\ud800"}', "s", "surrogate"),
        (b'{"s": ' + b"[" * 100_000 + b"}", None, "nested too deeply"),
    ],
)
def test_a_wrong_line_is_one_reject(path, line, column, reason):
    good = b'{"i": 5, "f": 0.5, "s": "x"}\n'
    rows, rejects = read(path, good + line + b"\n" + good)
    assert [number for number, _ in rows] == [1, 3]
    assert rows[0][1] == rows[1][1] == (5, 0.5, b"x")
    ((number, found, why, text),) = rejects
    assert (number, found, text) == (2, column, line)
    assert reason in why


def test_missing_null_marker_and_bool(path):
    lines = [
        '{"s": "a", "more": {"x": [1]}}',
        '{"i": null, "f": null, "s": null}',
        '{"i": "NA", "f": "NA", "s": "NA"}',
        '{"i": "", "f": " NA ", "s": ""}',
        '{"i": true, "f": "2.5", "s": false}',
        '{"i": " 7 ", "f": 3, "s": 12345678901234567890}',
    ]
    rows, rejects = read(path, "\r\n".join(lines).encode())
    assert not rejects
    assert [values for _, values in rows] == [
        (None, None, b"a"),
        (None, None, None),
        (None, None, None),
        (None, None, None),
        (1, 2.5, b"false"),
        (7, 3.0, b"12345678901234567890"),
    ]


def test_blank_lines_line_numbers_and_no_last_line_end(path):
    data = b'\xef\xbb\xbf\n{"i": 1}\n\n  \r\n{"i": 2}\r\n\t\n {"i": 3} '
    for limits in ({}, {"chunk_bytes": 1}, {"chunk_bytes": 3}):
        rows, rejects = read(path, data, [INT], **limits)
        assert rows == [(2, (1,)), (5, (2,)), (7, (3,))]
        assert not rejects


def test_text_keeps_its_bytes(path):
    data = b'{"s": "\xff\xc3\xa9"}\n{"s": "\\u00e9\\n\\u0000"}\n'
    expected = [(b"\xff\xc3\xa9",), (b"\xc3\xa9\n\0",)]
    for wrong in (b"", b"oops\n"):
        rows, _ = read(path, data + wrong, [STRING])
        assert [values for _, values in rows] == expected


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1000])
def test_a_line_that_is_too_long_is_rejected(path, chunk_bytes):
    lines = [b'{"i": 1}', b'{"i": ' + b"9" * 300 + b"}", b'{"i": 3}']
    limits = {"chunk_bytes": chunk_bytes, "max_line_bytes": 100}
    rows, rejects = read(path, b"\n".join(lines) + b"\n", [INT], **limits)
    assert [number for number, _ in rows] == [1, 3]
    assert [r[0] for r in rejects] == [2]
    if chunk_bytes < 300:
        assert rejects[0][3] == lines[1][:100]


def test_objects_over_several_lines_are_not_put_together(path):
    data = b'{"i": 1,\n"f": 2}\n{"i": 3} {"i": 4}\n'
    rows, rejects = read(path, data)
    assert not rows
    assert [r[0] for r in rejects] == [1, 2, 3]


_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["NA", "1", "1.5", " 2 ", "nan"])
    | st.lists(st.integers(), max_size=1)
)
_OBJECTS = st.dictionaries(st.sampled_from(["i", "f", "s", "z"]), _VALUES)


@settings(max_examples=200, deadline=None)
@given(objects=st.lists(_OBJECTS, min_size=1, max_size=4), ascii_=st.booleans())
def test_arrow_and_python_read_alike(path, objects, ascii_):
    lines = [json.dumps(o, ensure_ascii=ascii_) for o in objects]
    data = "\n".join(lines).encode(errors="surrogatepass")
    together = read(path, data)
    alone = read(path, data, chunk_bytes=1)
    in_python = read(path, data + b"\noops")
    assert together == alone
    assert together == (in_python[0], in_python[1][:-1])


def test_header(path):
    path.write_bytes(b'{"b": 1}\noops\n{"a": 1, "b": 2}\n')
    header = JsonLinesSource(str(path)).header()
    assert header.names == ("b", "a") and not header.complete
    path.write_bytes(b"")
    assert JsonLinesSource(str(path)).header().names == ()
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(UserError, match="data.jsonl holds no JSON lines: line 1"):
        JsonLinesSource(str(path)).header()
