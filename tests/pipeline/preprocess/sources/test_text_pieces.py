"""Pieces of text files, read one after the other, are the whole file."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess.sources import planning, text_pieces
from pipeline.preprocess.sources.base import WHOLE
from pipeline.preprocess.sources.delimited import DelimitedSource
from pipeline.preprocess.sources.json_lines import JsonLinesSource


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pieces") / "data"


def read(source, pieces, columns):
    """Returns all that is read: rows with lines and texts, and rejects."""
    found, count = [], 0
    for piece in pieces:
        for raw in source.read(piece, columns):
            count += raw.rows_read
            lines = raw.lines.tolist()
            for i, (line, row) in enumerate(
                zip(lines, raw.table.to_pylist(), strict=True)
            ):
                found.append((line, tuple(row.values()), raw.text(i)))
            found += [(r.line, r.reason, r.text) for r in raw.rejects]
    assert count == len(found)
    return sorted(found)


_LINES = st.lists(
    st.sampled_from(
        ["1,2", '"a\nb",2', '"a""\r\n",2', "", '1,"x,y"', "1", "1,2,3", 'a"b,c', '"x']
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(
    lines=_LINES,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.booleans(),
    last=st.booleans(),
    piece_bytes=st.integers(1, 80),
)
def test_records(path, lines, end, mark, last, piece_bytes):
    text = end.join(["x,y", *lines]) + (end if last else "")
    path.write_bytes(b"\xef\xbb\xbf" * mark + text.encode())
    for names in (None, ("x", "y")):
        source = DelimitedSource(str(path), names=names)
        pieces = source.pieces(piece_bytes)
        assert read(source, pieces, ["y"]) == read(source, [WHOLE], ["y"])
        _check_chain(pieces, path.stat().st_size)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), piece_bytes=st.integers(1, 80))
def test_any_bytes(path, data, piece_bytes):
    path.write_bytes(b"x,y\n" + data)
    source = DelimitedSource(str(path))
    pieces = source.pieces(piece_bytes)
    assert read(source, pieces, ["x"]) == read(source, [WHOLE], ["x"])


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(['{"x": 1}', '{"x": "a,b"}', "", "oops", " ", '{"x": []}'])
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    piece_bytes=st.integers(1, 50),
)
def test_lines(path, lines, end, mark, piece_bytes):
    path.write_bytes(b"\xef\xbb\xbf" * mark + end.join(lines).encode())
    source = JsonLinesSource(str(path))
    pieces = source.pieces(piece_bytes)
    assert read(source, pieces, ["x"]) == read(source, [WHOLE], ["x"])
    _check_chain(pieces, path.stat().st_size)


def _check_chain(pieces, size):
    assert pieces[0].start == 0 and pieces[-1].end is None
    for i, (one, other) in enumerate(zip(pieces, pieces[1:], strict=False)):
        assert (one.index, other.index) == (i, i + 1)
        assert one.end == other.start <= size
        assert one.first <= other.first


@pytest.mark.parametrize("row", ["1,22222222", '1,"2222\n22"'])
def test_there_are_as_many_pieces_as_expected(path, row):
    path.write_text("x,y\n" + (row + "\n") * 10_000)
    size = path.stat().st_size
    assert len(text_pieces.plan_records(str(path), ",", size // 5)) in (5, 6)
    assert len(text_pieces.plan_records(str(path), ",", size + 1)) == 1


def test_compressed_files_and_broken_records_stay_whole(path):
    text = b"x,y\n" + b"1,2\n" * 1000
    path.write_bytes(gzip.compress(text))
    assert text_pieces.plan_records(str(path), ",", 10) == (WHOLE,)
    assert text_pieces.plan_lines(str(path), 10) == (WHOLE,)
    path.write_bytes(text + b'1,"open\n' + b"1,2\n" * 1000)
    assert text_pieces.plan_records(str(path), ",", 10) == (WHOLE,)


def test_pieces_are_planned_for_several_workers_only(path):
    path.write_text("x,y\n" + "1,2\n" * (5 << 20))
    source = DelimitedSource(str(path))
    assert planning.pieces([source], 1) == [(0, source, WHOLE)]
    assert [p.index for _, _, p in planning.pieces([source], 2)] == [0, 1, 2]
    assert len(planning.pieces([source, source], 1, 10 << 20)) == 4
