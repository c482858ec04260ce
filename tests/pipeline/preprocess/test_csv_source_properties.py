"""CSV reading agrees with Python's csv module, whatever the size of the chunks."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess.csv_source import read_batches

FIELDS = st.text(alphabet='ab ,;"\n\ré😀', max_size=6)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
# Bare pieces of CSV text: mostly malformed, with stray and unclosed quotes.
GARBAGE = st.text(alphabet='a,"\n\ré', max_size=40)
CHUNKS = st.integers(1, 60)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("csv") / "data.csv")


def header(width):
    return ",".join(f"c{i}" for i in range(width))


def read(path, text, width, chunk_bytes, **options):
    with open(path, "wb") as file:
        file.write(text.encode())
    columns = header(width).split(",")
    rows, rejects = [], []
    for batch in read_batches(path, columns, chunk_bytes=chunk_bytes, **options):
        for i, row in enumerate(batch.table.to_pylist()):
            line = int(batch.lines[i])
            rows.append((line, [value.decode() for value in row.values()]))
            (again,) = csv.reader(io.StringIO(batch.text(i).decode(), newline=""))
            assert again == rows[-1][1]
        rejects += batch.rejects
    return rows, rejects


def oracle(text, width):
    """What the csv module reads: (good rows, lines of ragged rows)."""
    reader = csv.reader(io.StringIO(text, newline=""))
    rows, ragged, line = [], [], 1
    for row in reader:
        if row and line > 1:
            if len(row) == width:
                rows.append((line, row))
            else:
                ragged.append(line)
        line = reader.line_num + 1
    return rows, ragged


@given(
    width=st.integers(1, 4),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    line_end=LINE_ENDS,
    chunk_bytes=CHUNKS,
    data=st.data(),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_written_tables_come_back(path, width, quoting, line_end, chunk_bytes, data):
    table = data.draw(
        st.lists(st.lists(FIELDS, min_size=width, max_size=width), max_size=8)
    )
    text = io.StringIO(newline="")
    # Older versions of the writer quote only the line end that they write.
    needs_all = any("\r" in field or "\n" in field for row in table for field in row)
    quoting = csv.QUOTE_ALL if needs_all else quoting
    csv.writer(text, quoting=quoting, lineterminator=line_end).writerows(table)
    text = header(width) + line_end + text.getvalue()
    rows, rejects = read(path, text, width, chunk_bytes)
    assert [row for _, row in rows] == table
    assert rows == oracle(text, width)[0]
    assert not rejects


@given(text=GARBAGE, width=st.integers(1, 3), chunk_bytes=CHUNKS)
@settings(max_examples=600, deadline=None, derandomize=True)
def test_garbage_is_read_as_csv_reads_it(path, text, width, chunk_bytes):
    text = header(width) + "\n" + text
    *_, last = csv.reader(io.StringIO(text + "\nend\n", newline=""))
    rows, rejects = read(path, text, width, chunk_bytes)
    if last == ["end"]:
        assert (rows, [reject.line for reject in rejects]) == oracle(text, width)
    else:
        assert any("never closed" in reject.reason for reject in rejects)


@given(
    text=GARBAGE,
    width=st.integers(1, 3),
    chunk_bytes=CHUNKS,
    max_record_bytes=st.integers(9, 30),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_chunks_make_no_difference(path, text, width, chunk_bytes, max_record_bytes):
    text = header(width) + "\n" + text
    results = [
        read(path, text, width, size, max_record_bytes=max_record_bytes)
        for size in (chunk_bytes, 1 << 20)
    ]
    assert results[0] == results[1]


@given(text=GARBAGE, width=st.integers(1, 3), chunk_bytes=CHUNKS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_line_is_lost(path, text, width, chunk_bytes):
    """Without quotes each line that is not blank is a row or a reject."""
    text = header(width) + "\n" + text.replace('"', "")
    rows, rejects = read(path, text, width, chunk_bytes)
    lines = io.StringIO(text, newline="").readlines()[1:]
    expected = [i + 2 for i, line in enumerate(lines) if line.strip("\r\n")]
    assert sorted([line for line, _ in rows] + [r.line for r in rejects]) == expected
