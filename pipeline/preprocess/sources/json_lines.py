"""JSON lines: one object a line.

Arrow parses a block where all of it is as declared. A block with anything else in it
goes through Python's parser line by line, and numbers stay the text they are, so that
the rules of text decide (no int passes through a float) and one wrong line is one
reject. Both ways give the same rows.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pipeline.preprocess import number_text
from pipeline.preprocess.byte_source import ByteSource
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.sources import text_pieces
from pipeline.preprocess.sources.base import (
    FilePiece,
    Header,
    LineTexts,
    RawBatch,
)
from pipeline.types import Column, ColumnType, UserError

MAX_LINE_BYTES = 64 << 20
"""Longest line that is read; a longer one is rejected."""

_CHUNK_BYTES = 4 << 20
_HEADER_BYTES = 1 << 20
_MAX_REJECT_BYTES = 64 << 10
_MAX_SHOWN = 60
_ARROW_TYPES = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}


class _Number(str):
    """The text of a number, to tell it from a string."""


_DECODER = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


def _parse(line: bytes) -> dict[str, Any] | str:
    """Returns the object of a line, or what is wrong with it."""
    try:
        value = _DECODER.decode(line.decode(errors="surrogateescape").strip())
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at character {error.pos + 1}"
    except RecursionError:
        return "is not read: it is nested too deeply"
    if not isinstance(value, dict):
        return "is JSON, but no object"
    return value


@dataclasses.dataclass(frozen=True, eq=False)
class _Block:
    """The lines of a block that are not blank; see LineTexts and RawBatch."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray

    def line(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.ends[index]]


def _split(data: bytes, first_line: int) -> _Block:
    """Finds the lines of text that ends where a line ends."""
    buffer = np.frombuffer(data, np.uint8)
    cuts = np.flatnonzero(buffer == 0x0A)
    if not data.endswith(b"\n"):
        cuts = np.append(cuts, len(data))
    starts = np.concatenate(([0], cuts[:-1] + 1)).astype(np.int64)
    lines = np.arange(first_line, first_line + len(cuts))
    filled = cuts > starts
    starts, ends, lines = starts[filled], cuts[filled], lines[filled]
    ends = ends - (buffer[ends - 1] == 0x0D)
    doubtful = np.flatnonzero((ends == starts) | (buffer[starts] <= 0x20)).tolist()
    blank = [i for i in doubtful if not data[starts[i] : ends[i]].strip()]
    if blank:
        starts, ends, lines = (np.delete(a, blank) for a in (starts, ends, lines))
    return _Block(data, starts, ends, lines)


def _blocks(
    source: ByteSource, first_line: int, chunk_bytes: int, max_line_bytes: int
) -> Iterator[_Block | Reject]:
    """Yields blocks of whole lines, and a reject for each line that is too long."""
    rest, line, final = b"", first_line, False
    while not final:
        chunk = source.read(max(chunk_bytes, len(rest)))
        final = not chunk
        rest += chunk
        end = len(rest) if final else rest.rfind(b"\n") + 1
        if end:
            yield _split(rest[:end], line)
            line += rest.count(b"\n", 0, end)
            rest = rest[end:]
        if len(rest) > max_line_bytes:
            reason = f"longer than {max_line_bytes} bytes"
            text = rest[: min(_MAX_REJECT_BYTES, max_line_bytes)]
            yield Reject(source.path, line, None, reason, text)
            while (more := source.read(chunk_bytes)) and b"\n" not in more:
                pass
            rest, line = more.partition(b"\n")[2], line + 1


def _parse_fast(block: _Block, schema: pa.Schema) -> pa.RecordBatch | None:
    """Parses a block with Arrow; None where it holds anything but what is declared."""
    data = block.data
    buffer = np.frombuffer(data, np.uint8)
    one_a_line = (buffer[block.starts] == ord("{")) & (
        buffer[block.ends - 1] == ord("}")
    )
    # Arrow takes NaN and Inf for numbers and does not look where lines end.
    if not one_a_line.all() or b"NaN" in data or b"Inf" in data:
        return None
    try:
        table = pa.json.read_json(
            pa.BufferReader(data),
            pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pa.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(block.starts):
        return None
    batch = table.select(schema.names).combine_chunks().to_batches()[0]
    # Of what is too large for a float, the text has to be shown.
    floats = (c for c in batch.columns if pa.types.is_floating(c.type))
    if any(pc.any(pc.is_inf(column)).as_py() for column in floats):
        return None
    return batch


def _text(value: Any, kind: ColumnType | None) -> bytes | None:
    """Returns the text of a JSON value.

    Raises:
      ValueError: The value cannot be that of a column.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        if kind is ColumnType.INT:
            return b"1" if value else b"0"
        return b"true" if value else b"false"
    if isinstance(value, str):
        try:
            return value.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(
                "holds half of a surrogate pair, which is no text"
            ) from error
    shown = json.dumps(value)
    if len(shown) > _MAX_SHOWN:
        shown = shown[:_MAX_SHOWN] + "..."
    kind_of_value = "a list" if isinstance(value, list) else "an object"
    raise ValueError(f"{shown} is {kind_of_value}, not a single value")


class _Reader:
    """Turns blocks of one file into batches."""

    def __init__(self, path: str, columns: Sequence[str], declared: Sequence[Column]):
        self._path = path
        self._columns = columns
        by_name = {column.name: column for column in declared}
        self._kinds = [by_name[c].type if c in by_name else None for c in columns]
        self._schema = None
        if all(c in by_name and _is_plain(by_name[c]) for c in columns):
            self._schema = pa.schema(
                [(c, _ARROW_TYPES[by_name[c].type]) for c in columns]
            )

    def batch(self, block: _Block) -> RawBatch:
        if self._schema is not None and len(block.starts):
            table = _parse_fast(block, self._schema)
            if table is not None:
                texts = LineTexts(block.data, block.starts, block.ends)
                rows = len(block.starts)
                return RawBatch(self._path, table, block.lines, (), rows, texts)
        return self._parse_lines(block)

    def _parse_lines(self, block: _Block) -> RawBatch:
        rows, good, rejects = [], [], []
        for i in range(len(block.starts)):
            line = block.line(i)
            row = self._row(line)
            if isinstance(row, list):
                rows.append(row)
                good.append(i)
            else:
                column, reason = row
                place = int(block.lines[i])
                rejects.append(Reject(self._path, place, column, reason, line))
        values = zip(*rows, strict=True) if rows else [[]] * len(self._columns)
        return RawBatch(
            self._path,
            pa.record_batch(
                [pa.array(column, pa.binary()) for column in values],
                list(self._columns),
            ),
            block.lines[good],
            tuple(rejects),
            len(block.starts),
            LineTexts(block.data, block.starts[good], block.ends[good]),
        )

    def _row(self, line: bytes) -> list[bytes | None] | tuple[str | None, str]:
        """Returns the wanted values, or the column at fault and what is wrong."""
        value = _parse(line)
        if isinstance(value, str):
            return None, value
        row = []
        for column, kind in zip(self._columns, self._kinds, strict=True):
            try:
                row.append(_text(value.get(column), kind))
            except ValueError as error:
                return column, f"column {column}: {error}"
        return row


def _is_plain(column: Column) -> bool:
    """Whether Arrow's reading of the column cannot differ from that of its text."""
    if column.type is not ColumnType.FLOAT:
        return True
    # A marker such as -1 is compared as text, and would not mean -1.0.
    return not number_text.numbers_among(column.missing, ColumnType.FLOAT)


@dataclasses.dataclass(frozen=True)
class JsonLinesSource:
    """A file of JSON objects, one a line, plain or compressed.

    Attributes:
      path: The file.
    """

    path: str

    def header(self) -> Header:
        names: dict[str, None] = {}
        wrong = None
        with ByteSource(self.path) as source:
            for block in _blocks(source, 1, _HEADER_BYTES, MAX_LINE_BYTES):
                if isinstance(block, Reject):
                    wrong = wrong or f"line {block.line} is {block.reason}"
                    break
                for i in range(len(block.starts)):
                    value = _parse(block.line(i))
                    if isinstance(value, dict):
                        names.update(dict.fromkeys(value))
                    else:
                        wrong = wrong or f"line {block.lines[i]} {value}"
                break
        if wrong and not names:
            raise UserError(f"{self.path} holds no JSON lines: {wrong}")
        return Header(tuple(names), complete=False)

    def pieces(self, piece_bytes: int) -> Sequence[FilePiece]:
        return text_pieces.plan_lines(self.path, piece_bytes)

    def read(
        self,
        piece: FilePiece,
        columns: Sequence[str],
        declared: Sequence[Column] = (),
        *,
        chunk_bytes: int = _CHUNK_BYTES,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> Iterator[RawBatch]:
        """Reads rows; see Source.read. `chunk_bytes` and `max_line_bytes` are limits."""
        reader = _Reader(self.path, tuple(columns), declared)
        with ByteSource(self.path, piece.start, piece.end) as source:
            for block in _blocks(source, piece.first, chunk_bytes, max_line_bytes):
                if isinstance(block, Reject):
                    yield self._only(block, columns)
                elif len(block.starts):
                    yield reader.batch(block)

    def _only(self, reject: Reject, columns: Sequence[str]) -> RawBatch:
        none = np.empty(0, np.int64)
        table = pa.record_batch(
            [pa.array([], pa.binary())] * len(columns), list(columns)
        )
        return RawBatch(
            self.path, table, none, (reject,), 1, LineTexts(b"", none, none)
        )
