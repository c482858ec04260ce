"""Reading CSV: formats, line ends, quotes, broken records, line numbers."""

import bz2
import gzip
import pathlib
import pickle

import numpy as np
import pyarrow as pa
import pytest

from pipeline.preprocess.csv_source import read_batches, read_header
from pipeline.preprocess.rejects import Reject
from pipeline.types import ExitCode, UserError

CENSUS = str(pathlib.Path(__file__).parents[3] / "examples/census/adult.csv.gz")
BOM = b"\xef\xbb\xbf"
ROWS = b"age,job,pay\n25,Private,1\n38,,0\n"


@pytest.fixture
def write(tmp_path):
    def write_file(data, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write_file


def read(path, columns=None, **options):
    """Returns (rows, lines, rejects, rows read) of a file."""
    delimiter = options.get("delimiter", ",")
    columns = columns or read_header(path, delimiter=delimiter)
    rows, lines, rejects, rows_read = [], [], [], 0
    for batch in read_batches(path, columns, **options):
        assert batch.table.schema.names == list(columns)
        assert set(batch.table.schema.types) == {pa.binary()}
        assert batch.lines.dtype == np.int64
        assert batch.table.num_rows == len(batch.lines)
        rows += [tuple(row.values()) for row in batch.table.to_pylist()]
        lines += batch.lines.tolist()
        rejects += batch.rejects
        rows_read += batch.rows_read
    assert rows_read == len(rows) + len(rejects)
    return rows, lines, rejects, rows_read


class TestTwin:
    """A byte order mark and the kind of line end carry no data."""

    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
    @pytest.mark.parametrize("mark", [b"", BOM])
    @pytest.mark.parametrize("last", [True, False])
    @pytest.mark.parametrize("chunk_bytes", [1, 7, 4 << 20])
    def test_same_names_rows_and_lines(self, write, line_end, mark, last, chunk_bytes):
        data = ROWS if last else ROWS.rstrip(b"\n")
        path = write(mark + data.replace(b"\n", line_end))
        assert read_header(path) == ("age", "job", "pay")
        rows, lines, rejects, _ = read(path, chunk_bytes=chunk_bytes)
        assert rows == [(b"25", b"Private", b"1"), (b"38", b"", b"0")]
        assert lines == [2, 3]
        assert not rejects

    def test_label_first(self, write):
        path = write(BOM + b"income,age\r\n<=50K,25\r\n")
        assert read_header(path)[0] == "income"
        assert read(path, ["income"])[0] == [(b"<=50K",)]

    def test_census_twin(self, write):
        original = read(CENSUS)
        twin = write(
            BOM
            + gzip.decompress(pathlib.Path(CENSUS).read_bytes()).replace(b"\n", b"\r\n")
        )
        assert read_header(twin) == read_header(CENSUS)
        assert read(twin) == original

    def test_mark_later_in_the_file_is_data(self, write):
        path = write(b"a,b\n1,2\n" + BOM + b"3,4\n")
        for chunk_bytes in (1, 4, 100):
            rows = read(path, chunk_bytes=chunk_bytes)[0]
            assert rows == [(b"1", b"2"), (BOM + b"3", b"4")]


class TestQuotes:
    def test_four_kinds_of_rows(self, write):
        path = write(
            b"id,text\n1,plain\n"
            b'2,"a, b"\n3,"say ""hi"""\n4,"two\r\nlines"\n"5","last"\n'
        )
        rows, lines, _, rows_read = read(path)
        assert rows == [
            (b"1", b"plain"),
            (b"2", b"a, b"),
            (b"3", b'say "hi"'),
            (b"4", b"two\r\nlines"),
            (b"5", b"last"),
        ]
        assert lines == [2, 3, 4, 5, 7]
        assert rows_read == 5

    @pytest.mark.parametrize("chunk_bytes", [1, 5, 1000])
    def test_stray_quotes_are_literal(self, write, chunk_bytes):
        path = write(b'a,b\n5" pipe,1\n"x"y"z,2\n"6"" pipe, long",3\n7"",4\n')
        rows, lines, rejects, _ = read(path, chunk_bytes=chunk_bytes)
        assert [a for a, _ in rows] == [b'5" pipe', b'xy"z', b'6" pipe, long', b'7""']
        assert lines == [2, 3, 4, 5]
        assert not rejects

    @pytest.mark.parametrize("chunk_bytes", [1, 16, 1000])
    def test_quote_never_closed(self, write, chunk_bytes):
        path = write(b'a,b\n1,"x\ny"\n2,"open\n3,z\n\n4,w\n')
        rows, lines, rejects, _ = read(path, chunk_bytes=chunk_bytes)
        assert rows == [(b"1", b"x\ny"), (b"3", b"z"), (b"4", b"w")]
        assert lines == [2, 5, 7]
        reason = "the quote opened on line 4 is never closed"
        assert rejects == [Reject(path, 4, None, reason, b'2,"open')]

    def test_unclosed_quote_opens_below_the_first_line(self, write):
        path = write(b'a,b\n"1\n2","open\n')
        _, _, rejects, _ = read(path)
        assert rejects[0].line == 2
        assert "opened on line 3" in rejects[0].reason

    def test_bytes_are_untouched(self, write):
        path = write(b'a,b\n \x00 ,\xff\xfe\n"\x00,", NA\n')
        assert read(path)[0] == [(b" \x00 ", b"\xff\xfe"), (b"\x00,", b" NA")]


class TestBrokenRecords:
    @pytest.mark.parametrize(
        "bad, found", [(b"1,2,3", "3 fields"), (b"1,2,3,4,5", "5 fields")]
    )
    @pytest.mark.parametrize("chunk_bytes", [50, 4 << 20])
    def test_ragged_row_at_line_300(self, write, bad, found, chunk_bytes):
        lines = [b"a,b,c,d"] + [b"1,2,3,4"] * 500
        lines[299] = bad
        path = write(b"\n".join(lines) + b"\n")
        rows, numbers, rejects, rows_read = read(path, chunk_bytes=chunk_bytes)
        assert len(rows) == 499
        assert rows_read == 500
        assert numbers == [n for n in range(2, 502) if n != 300]
        reason = f"has {found}, expected 4"
        assert rejects == [Reject(path, 300, None, reason, bad)]

    def test_ragged_rows_that_are_not_utf8(self, write):
        path = write(b'a,b\r\n\xff\r\n1,"2\r\n,"\r\n\r\n\xfe,\xfe,"\r\n"\r\n3,4')
        rows, lines, rejects, _ = read(path)
        assert rows == [(b"1", b"2\r\n,"), (b"3", b"4")]
        assert lines == [3, 8]
        assert [(r.line, r.text) for r in rejects] == [
            (2, b"\xff"),
            (6, b'\xfe,\xfe,"\r\n"'),
        ]
        assert rejects[0].reason == "has 1 field, expected 2"

    def test_only_ragged_rows(self, write):
        rows, _, rejects, _ = read(write(b"a,b\n1\n2\n"))
        assert rows == []
        assert len(rejects) == 2

    def test_blank_lines_are_ignored(self, write):
        body = [b"1,2"] * 500
        body.insert(250, b"")
        path = write(b"a,b\n" + b"\n".join(body) + b"\n\n\n")
        rows, lines, rejects, rows_read = read(path)
        assert len(rows) == rows_read == 500
        assert not rejects
        assert lines[249:251] == [251, 253]

    @pytest.mark.parametrize("chunk_bytes", [1, 2, 100])
    def test_blank_lines_in_a_one_column_file(self, write, chunk_bytes):
        path = write(b'a\r\n\r\n1\r\n\r\n""\r\n2')
        rows, lines, rejects, _ = read(path, chunk_bytes=chunk_bytes)
        assert rows == [(b"1",), (b"",), (b"2",)]
        assert lines == [3, 5, 6]
        assert not rejects

    @pytest.mark.parametrize("chunk_bytes", [1, 30, 10_000])
    def test_too_long_line(self, write, chunk_bytes):
        path = write(b"a,b\n1,2\n" + b"x" * 200 + b"\n3,4\n5," + b"y" * 200)
        rows, lines, rejects, _ = read(
            path, chunk_bytes=chunk_bytes, max_record_bytes=100
        )
        assert rows == [(b"1", b"2"), (b"3", b"4")]
        assert lines == [2, 4]
        assert [r.line for r in rejects] == [3, 5]
        assert "longer than 100 bytes" in rejects[0].reason
        assert [r.text for r in rejects] == [b"x" * 100, b"5," + b"y" * 98]

    @pytest.mark.parametrize("chunk_bytes", [1, 30, 10_000])
    def test_too_long_quoted_record(self, write, chunk_bytes):
        path = write(b'a,b\n1,"open\n' + b"2,3\n" * 40 + b'4,"5"\n')
        rows, lines, rejects, _ = read(
            path, chunk_bytes=chunk_bytes, max_record_bytes=100
        )
        assert rows == [(b"2", b"3")] * 40 + [(b"4", b"5")]
        assert lines == list(range(3, 44))
        assert [(r.line, r.text) for r in rejects] == [(2, b'1,"open')]


class TestFormats:
    # The extension says nothing.
    @pytest.mark.parametrize(
        "compress",
        [
            gzip.compress,
            bz2.compress,
            lambda data: pa.compress(data, "zstd", asbytes=True),
            lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
            lambda data: bz2.compress(data[:9]) + bz2.compress(data[9:]),
            lambda data: gzip.compress(data) + bytes(512),
        ],
        ids=["gzip", "bz2", "zstd", "two gzip", "two bz2", "padded gzip"],
    )
    def test_compressed(self, write, compress):
        path = write(compress(ROWS), "data.txt")
        assert read(path)[0] == [(b"25", b"Private", b"1"), (b"38", b"", b"0")]

    def test_plain_file_named_gz(self, write):
        assert len(read(write(ROWS, "data.csv.gz"))[0]) == 2

    def test_column_named_like_bz2(self, write):
        assert read_header(write(b"BZh9,b\n1,2\n")) == ("BZh9", "b")

    @pytest.mark.parametrize("kind", ["gzip", "bz2", "zstd"])
    def test_cut_off(self, write, kind):
        rng = np.random.default_rng(0)
        data = b"a,b\n" + b"".join(
            b"%d,%d\n" % (x, x) for x in rng.integers(9e9, size=9999)
        )
        whole = {
            "gzip": gzip.compress,
            "bz2": bz2.compress,
            "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
        }[kind](data)
        path = write(whole[: len(whole) * 2 // 3])
        with pytest.raises(UserError, match="cut off or damaged") as caught:
            read(path, ["a"])
        assert caught.value.exit_code is ExitCode.BAD_DATA
        assert path in str(caught.value)

    def test_damaged_gzip(self, write):
        data = bytearray(gzip.compress(ROWS * 50))
        data[-6] ^= 1
        with pytest.raises(UserError, match="damaged"):
            read(write(bytes(data)), ["age"])

    def test_other_delimiter(self, write):
        path = write(b'a\tb\n1,5\t"x\ty"\n')
        assert read(path, delimiter="\t")[0] == [(b"1,5", b"x\ty")]

    def test_census(self):
        rows, lines, rejects, _ = read(CENSUS, ["income", "age"])
        assert len(rows) == 48842
        assert rows[0] == (b"<=50K", b"25")
        assert lines == list(range(2, 48844))
        assert not rejects


class TestHeader:
    def test_names_are_trimmed_and_unquoted(self, write):
        path = write(b'\n age ,"pay, ""net""",\xc3\xa9\n')
        assert read_header(path) == ("age", 'pay, "net"', "é")
        assert read(path)[0] == []

    @pytest.mark.parametrize(
        "data, message",
        [
            (b"", "is empty"),
            (b"\n\r\n", "is empty"),
            (BOM, "is empty"),
            (b"a,b,a\n", "'a' occurs twice"),
            (b"a, a\n", "'a' occurs twice"),
            (b"a,,c\n", "column 2 of 3 has no name"),
            (b"a,\xff\n", "cannot be read"),
            (b'a,"b\n1,2\n', "never closed"),
            ("a,b\n".encode("utf-16"), "UTF-16"),
            (b"PK\x03\x04...", "zip archive or spreadsheet"),
        ],
    )
    def test_bad_header(self, write, data, message):
        path = write(data)
        for attempt in (read_header, lambda path: next(read_batches(path, ["a"]))):
            with pytest.raises(UserError, match=message) as caught:
                attempt(path)
            assert path in str(caught.value)
            assert "\n" not in str(caught.value)

    def test_unreadable(self, tmp_path):
        for path in (tmp_path, tmp_path / "absent.csv"):
            with pytest.raises(UserError, match="cannot be read"):
                read_header(str(path))

    def test_absent_column(self, write):
        with pytest.raises(UserError, match="no column 'wage'; its columns are age"):
            read(write(ROWS), ["age", "wage"])

    @pytest.mark.parametrize("delimiter", ['"', "", ",,", "\n", "é"])
    def test_bad_delimiter(self, write, delimiter):
        with pytest.raises(ValueError, match="delimiter"):
            read_header(write(ROWS), delimiter=delimiter)


def test_text_of_a_row_and_pickling(write):
    path = write(b'a,b\n1\n2,"x\r\ny"\r\n3,4\n')
    (batch,) = read_batches(path, ["b"])
    batch = pickle.loads(pickle.dumps(batch))
    assert [batch.text(i) for i in range(2)] == [b'2,"x\r\ny"', b"3,4"]
    assert batch.table.column("b").to_pylist() == [b"x\r\ny", b"4"]
    assert batch.rejects[0].text == b"1"


def test_column_order_is_the_asked_one(write):
    assert read(write(ROWS), ["pay", "age"])[0] == [(b"1", b"25"), (b"0", b"38")]
