"""CSV files as Arrow record batches of untouched bytes, with line numbers.

Whole records are cut out of the stream by `record_ends` and parsed by Arrow.
Broken records (ragged, a quote never closed, too long) come beside the rows as
`Reject`s; nothing is dropped without one.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv

from pipeline.preprocess.byte_source import ByteSource
from pipeline.preprocess.csv_pieces import MAX_RECORD_BYTES, Piece, cut_pieces
from pipeline.preprocess.record_ends import count_fields
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.sources.base import WHOLE, FilePiece, LineTexts, RawBatch
from pipeline.types import UserError

_MAX_CHUNK_BYTES = 1 << 30
_HEADER_CHUNK_BYTES = 64 << 10
_BOM = b"\xef\xbb\xbf"


def read_header(path: str, *, delimiter: str = ",") -> tuple[str, ...]:
    """Returns the column names: the first record, blanks around names trimmed.

    Raises:
      UserError: The file cannot be read or is empty, or its first record has an
        empty or repeated name.
    """
    _check_delimiter(delimiter)
    with ByteSource(path) as source:
        pieces = cut_pieces(source, delimiter, _HEADER_CHUNK_BYTES, MAX_RECORD_BYTES)
        return _take_header(path, pieces, delimiter)[0]


def check_readable(path: str) -> None:
    """Raises UserError if the file cannot be opened or is plainly no text file."""
    with ByteSource(path):
        pass


def read_batches(
    path: str,
    columns: Sequence[str],
    *,
    delimiter: str = ",",
    names: Sequence[str] | None = None,
    piece: FilePiece = WHOLE,
    chunk_bytes: int = 4 << 20,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[RawBatch]:
    """Reads the rows of a file, about `chunk_bytes` at a time.

    After a quote that is never closed, or a record that is too long, the record's
    first line is rejected and reading goes on with the next line.

    Args:
      path: A plain, gzip, bz2 or zstd file.
      columns: Names of the wanted columns, at least one.
      delimiter: One ASCII character.
      names: The names of all columns, for a file whose first record is a row.
      piece: The part to read.
      chunk_bytes: Decompressed bytes a batch, more where a record needs them.
      max_record_bytes: Longest record that is read.

    Raises:
      UserError: The file or its header cannot be read, lacks one of `columns`,
        or (with BAD_DATA) its compressed data is cut off or damaged.
    """
    _check_delimiter(delimiter)
    if not columns or not 0 < chunk_bytes <= _MAX_CHUNK_BYTES:
        raise ValueError("needs at least one column and a chunk of at most 1 GiB")
    has_header = names is None and not piece.start
    if names is None and piece.start:
        names = read_header(path, delimiter=delimiter)
    with ByteSource(path, piece.start, piece.end) as source:
        texts = cut_pieces(
            source, delimiter, chunk_bytes, max_record_bytes, piece.first
        )
        if has_header:
            names, first = _take_header(path, texts, delimiter)
            texts = itertools.chain([first], texts)
        absent = [name for name in columns if name not in names]
        if absent:
            raise UserError(
                f"{path} has no column {', '.join(map(repr, absent))}; "
                f"its columns are {', '.join(names)}"
            )
        parser = _Parser(path, names, tuple(columns), delimiter)
        for text in texts:
            for batch in parser.batches(text):
                yield dataclasses.replace(batch, position=source.position)


def _check_delimiter(delimiter: str) -> None:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ValueError(f"delimiter {delimiter!r} is not one plain ASCII character")


def _take_header(
    path: str, pieces: Iterator[Piece], delimiter: str
) -> tuple[tuple[str, ...], Piece]:
    """Returns the column names and the first piece without the header."""
    first = next(pieces, None)
    if first is None:
        raise UserError(f"{path} is empty: it has no line with column names")
    if not len(first.starts):
        raise UserError(
            f"{path}: the line with column names: {first.rejects[0].reason}"
        )
    record = first.data[first.starts[0] : first.ends[0]]
    return _parse_header(path, record, delimiter), first.without_first()


def _parse_header(path: str, record: bytes, delimiter: str) -> tuple[str, ...]:
    try:
        text = record.decode()
        (fields,) = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: the column names cannot be read: {error}") from error
    names = tuple(field.strip() for field in fields)
    for i, name in enumerate(names):
        if not name:
            raise UserError(f"{path}: column {i + 1} of {len(names)} has no name")
        if name in names[:i]:
            raise UserError(f"{path}: the column name {name!r} occurs twice")
    return names


class _Parser:
    """Turns pieces of one file into batches."""

    def __init__(
        self, path: str, names: Sequence[str], columns: Sequence[str], delimiter: str
    ):
        self._path = path
        self._names = names
        self._columns = list(columns)
        self._delimiter = delimiter
        self._parse_options = pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True
        )
        self._convert_options = pa.csv.ConvertOptions(
            include_columns=self._columns,
            column_types=dict.fromkeys(columns, pa.binary()),
            strings_can_be_null=False,
        )

    def batches(self, piece: Piece) -> Iterator[RawBatch]:
        """Yields the batch of a piece; none if it holds nothing."""
        rows_read = len(piece.starts) + len(piece.rejects)
        if not rows_read:
            return
        try:
            table = self._parse(piece.data, len(piece.starts))
        except pa.ArrowInvalid:
            # Arrow's own handler of bad rows fails on text that is not UTF-8.
            piece = self._without_ragged(piece)
            table = self._parse(_text_of_rows(piece), len(piece.starts))
        yield RawBatch(
            self._path,
            table,
            piece.lines,
            piece.rejects,
            rows_read,
            LineTexts(piece.data, piece.starts, piece.ends),
        )

    def _parse(self, data: bytes, rows: int) -> pa.RecordBatch:
        if not rows:
            nothing = pa.array([], pa.binary())
            return pa.record_batch([nothing] * len(self._columns), self._columns)
        if data.startswith(_BOM):
            # Arrow would take it for a mark here, too; blank lines it ignores.
            data = b"\n" + data
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=self._names
            ),
            self._parse_options,
            self._convert_options,
        )
        if table.num_rows != rows:
            raise RuntimeError(
                f"{self._path}: {rows} records were parsed as {table.num_rows}"
            )
        return table.combine_chunks().to_batches()[0]

    def _without_ragged(self, piece: Piece) -> Piece:
        counts = count_fields(piece.data, piece.starts, piece.ends, self._delimiter)
        expected = len(self._names)
        good = counts == expected
        ragged = []
        for i in np.flatnonzero(~good).tolist():
            fields = "1 field" if counts[i] == 1 else f"{counts[i]} fields"
            reason = f"has {fields}, expected {expected}"
            text = piece.data[piece.starts[i] : piece.ends[i]]
            line = int(piece.lines[i])
            ragged.append(Reject(self._path, line, None, reason, text))
        return Piece(
            piece.data,
            piece.starts[good],
            piece.ends[good],
            piece.lines[good],
            (*ragged, *piece.rejects),
        )


def _text_of_rows(piece: Piece) -> bytes:
    """The text of the piece's rows alone, a line end behind each."""
    # No row is empty, so a start and an end never meet in one place.
    steps = np.zeros(len(piece.data) + 1, np.int8)
    steps[piece.starts] = 1
    steps[piece.ends] = -1
    kept = np.cumsum(steps, dtype=np.int8).astype(bool)
    kept[piece.ends] = True
    return np.frombuffer(piece.data + b"\n", np.uint8)[kept].tobytes()
