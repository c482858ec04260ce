"""A large text file cut into pieces at exact record boundaries."""

from __future__ import annotations

from pipeline.preprocess.byte_source import ByteSource
from pipeline.preprocess.csv_pieces import MAX_RECORD_BYTES
from pipeline.preprocess.record_ends import count_lines, find_records
from pipeline.preprocess.sources.base import WHOLE, FilePiece

_CHUNK_BYTES = 4 << 20


def _chunk_bytes(piece_bytes: int) -> int:
    # A piece begins where a chunk ends, so chunks are small beside pieces.
    return max(1, min(piece_bytes // 8, _CHUNK_BYTES))


class _Cuts:
    """Collects the places where pieces begin."""

    def __init__(self, piece_bytes: int):
        self._piece_bytes = piece_bytes
        self._starts = [(0, 1)]

    def add(self, offset: int, line: int) -> None:
        """Notes a record's begin; a piece begins there if the last one is full."""
        if offset - self._starts[-1][0] >= self._piece_bytes:
            self._starts.append((offset, line))

    def pieces(self, file_end: int) -> tuple[FilePiece, ...]:
        if self._starts[-1][0] == file_end and len(self._starts) > 1:
            self._starts.pop()
        ends = [start for start, _ in self._starts[1:]] + [None]
        return tuple(
            FilePiece(index, start, end, line)
            for index, ((start, line), end) in enumerate(
                zip(self._starts, ends, strict=True)
            )
        )


def plan_lines(path: str, piece_bytes: int) -> tuple[FilePiece, ...]:
    """Cuts a file of which each line is a record, lines ending with LF.

    A compressed file is one piece.
    """
    cuts = _Cuts(piece_bytes)
    with ByteSource(path) as source:
        if source.format != "plain":
            return (WHOLE,)
        offset, line = source.offset, 1
        while chunk := source.read(_chunk_bytes(piece_bytes)):
            end = chunk.rfind(b"\n") + 1
            lines = chunk.count(b"\n")
            if end:
                cuts.add(offset + end, line + lines)
            offset, line = offset + len(chunk), line + lines
    return cuts.pieces(offset)


def plan_records(path: str, delimiter: str, piece_bytes: int) -> tuple[FilePiece, ...]:
    """Cuts a delimited file, whose quoted fields may hold line breaks.

    A compressed file is one piece, and so is one with a record that is broken off:
    what is reported of it depends on all that follows.
    """
    cuts = _Cuts(piece_bytes)
    with ByteSource(path) as source:
        if source.format != "plain":
            return (WHOLE,)
        offset, line, rest, final = source.offset, 1, b"", False
        has_record = False
        while not final:
            chunk = source.read(max(_chunk_bytes(piece_bytes), len(rest)))
            final = not chunk
            rest += chunk
            if final or b'"' in rest:
                records = find_records(rest, delimiter, final)
                sizes = records.ends - records.starts
                consumed, lines = records.consumed, records.line_count
                if sizes.size and sizes.max() > MAX_RECORD_BYTES:
                    return (WHOLE,)
            else:
                consumed = rest.rfind(b"\n") + 1
                lines = count_lines(rest[:consumed])
            # The first piece must hold the column names, which blank lines may precede.
            has_record = has_record or bool(rest[:consumed].strip(b"\r\n"))
            offset, line, rest = offset + consumed, line + lines, rest[consumed:]
            if len(rest) > MAX_RECORD_BYTES or (final and rest):
                return (WHOLE,)
            if has_record and not final:
                cuts.add(offset, line)
    return cuts.pieces(offset)
