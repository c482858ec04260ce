"""A CSV file cut into pieces of whole records, and the records that are broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from pipeline.preprocess.byte_source import LINE_END, ByteSource, skip_line
from pipeline.preprocess.record_ends import Records, count_lines, find_records
from pipeline.preprocess.rejects import Reject

MAX_RECORD_BYTES = 64 << 20
"""Longest record that is read; a longer one is rejected."""

_MAX_REJECT_BYTES = 64 << 10


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """Whole records: their text, their places in it, and their line numbers."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    rejects: tuple[Reject, ...]

    def without_first(self) -> Piece:
        starts, ends, lines = self.starts[1:], self.ends[1:], self.lines[1:]
        offset = int(starts[0]) if len(starts) else len(self.data)
        return Piece(
            self.data[offset:], starts - offset, ends - offset, lines, self.rejects
        )


def cut_pieces(
    source: ByteSource,
    delimiter: str,
    chunk_bytes: int,
    max_record_bytes: int,
    first_line: int = 1,
) -> Iterator[Piece]:
    """Cuts a file into pieces of whole records."""
    rest, line, final = b"", first_line, False
    while not final:
        # As much again as is held makes the cost of a long record linear.
        chunk = source.read(max(chunk_bytes, len(rest)))
        final = not chunk
        rest += chunk
        stuck = bool(rest)
        while stuck:
            records = find_records(rest, delimiter, final)
            records, too_long = _up_to_long_record(records, rest, max_record_bytes)
            data, rest = rest[: records.consumed], rest[records.consumed :]
            lines, line = records.lines + line, line + records.line_count
            stuck = too_long or (final and bool(rest))
            rejects = ()
            if stuck:
                reason = f"longer than {max_record_bytes} bytes; is a quote not closed?"
                if not too_long:
                    opened = records.open_quote - records.consumed
                    opened_line = line + count_lines(rest[:opened])
                    reason = f"the quote opened on line {opened_line} is never closed"
                text, rest = _split_line(rest, source, chunk_bytes)
                text = text[: min(_MAX_REJECT_BYTES, max_record_bytes)]
                rejects = (Reject(source.path, line, None, reason, text),)
                line += 1
                stuck = bool(rest)
            if len(records) or rejects:
                yield Piece(data, records.starts, records.ends, lines, rejects)


def _up_to_long_record(
    records: Records, data: bytes, max_record_bytes: int
) -> tuple[Records, bool]:
    """The records ahead of the first one that is too long, and if there is one."""
    too_long = np.flatnonzero(records.ends - records.starts > max_record_bytes)
    if too_long.size:
        return records.before(int(too_long[0])), True
    return records, len(data) - records.consumed > max_record_bytes


def _split_line(
    data: bytes, source: ByteSource, chunk_bytes: int
) -> tuple[bytes, bytes]:
    """Splits off the first line; where its end is not in `data`, reads past it.

    Returns:
      As much of the line as `data` holds, and the text read behind the line.
    """
    if end := LINE_END.search(data):
        return data[: end.start()], data[end.end() :]
    return data, skip_line(source, chunk_bytes)
