"""Where the records of a piece of CSV text begin and end, found by numpy.

The rules are those of Python's csv module (strict=False) and of Arrow: a quote
opens a field only as its first byte, inside it a doubled quote is a literal one,
and what follows the closing quote up to the delimiter still belongs to the field.
"""

from __future__ import annotations

import dataclasses

import numpy as np

_QUOTE, _LF, _CR = 0x22, 0x0A, 0x0D


@dataclasses.dataclass(frozen=True, eq=False)
class Records:
    """The complete records of a buffer, blank lines left out.

    Attributes:
      starts: Offset of each record's first byte.
      ends: Offset behind each record's last byte, its line end not counted.
      lines: Number of physical lines in the buffer ahead of each record.
      consumed: Length of the part of the buffer that is made up of complete
        records and blank lines.
      line_count: Number of physical lines in that part.
      open_quote: Offset of the quote that is open at the end of the buffer.
    """

    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    consumed: int
    line_count: int
    open_quote: int | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def before(self, index: int) -> Records:
        """The records ahead of `index`, with what is consumed by them."""
        return Records(
            self.starts[:index],
            self.ends[:index],
            self.lines[:index],
            int(self.starts[index]),
            int(self.lines[index]),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class QuotedSpans:
    """Offsets of the quotes that open and close fields; the last may be open."""

    opens: np.ndarray
    closes: np.ndarray

    def outside(self, positions: np.ndarray) -> np.ndarray:
        """Whether each of `positions` (none of them a quote) is unquoted."""
        if not self.opens.size:
            return np.ones(len(positions), bool)
        return np.searchsorted(self.opens, positions) == np.searchsorted(
            self.closes, positions
        )


def find_records(data: bytes, delimiter: str, final: bool) -> Records:
    """Finds the records of `data`, which begins at the beginning of a record.

    Args:
      data: Text that does not end between the CR and the LF of one line end.
      delimiter: One ASCII character.
      final: Whether the file ends with `data`, so that the last record needs no
        line end.
    """
    buffer = np.frombuffer(data, np.uint8)
    spans = _quoted_spans(data, buffer, delimiter)
    line_ends = _line_ends(data, buffer)
    outside = np.arange(len(line_ends))
    if spans.opens.size:
        outside = np.flatnonzero(spans.outside(line_ends))
    cuts = line_ends[outside]
    starts = np.concatenate(([0], cuts + 1))
    lines = np.concatenate(([0], outside + 1))
    ends = cuts
    if b"\r" in data and cuts.size:
        # With a cut at 0 the index -1 is harmless: the record is blank anyway.
        ends = cuts - ((buffer[cuts] == _LF) & (buffer[cuts - 1] == _CR))
        ends = np.maximum(ends, starts[:-1])
    consumed, line_count = int(starts[-1]), int(lines[-1])
    is_open = len(spans.opens) > len(spans.closes)
    if final and not is_open and consumed < len(data):
        ends = np.append(ends, len(data))
        consumed, line_count = len(data), line_count + 1
    else:
        starts, lines = starts[:-1], lines[:-1]
    filled = ends > starts
    if not filled.all():
        starts, ends, lines = starts[filled], ends[filled], lines[filled]
    open_quote = int(spans.opens[-1]) if is_open else None
    return Records(starts, ends, lines, consumed, line_count, open_quote)


def count_fields(
    data: bytes, starts: np.ndarray, ends: np.ndarray, delimiter: str
) -> np.ndarray:
    """Number of fields of each record of `data`."""
    buffer = np.frombuffer(data, np.uint8)
    delimiters = np.flatnonzero(buffer == ord(delimiter))
    spans = _quoted_spans(data, buffer, delimiter)
    delimiters = delimiters[spans.outside(delimiters)]
    inside = np.searchsorted(delimiters, ends) - np.searchsorted(delimiters, starts)
    return inside + 1


def count_lines(data: bytes) -> int:
    """Number of line ends (LF, CRLF or CR) in `data`."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _line_ends(data: bytes, buffer: np.ndarray) -> np.ndarray:
    """Offsets of the last byte of each line end, quoted ones included."""
    ends = np.flatnonzero(buffer == _LF)
    if b"\r" not in data:
        return ends
    returns = np.flatnonzero(buffer == _CR)
    following = buffer[np.minimum(returns + 1, len(buffer) - 1)]
    alone = returns[following != _LF]
    return np.sort(np.concatenate((ends, alone))) if alone.size else ends


def _quoted_spans(data: bytes, buffer: np.ndarray, delimiter: str) -> QuotedSpans:
    if b'"' not in data:
        none = np.empty(0, np.int64)
        return QuotedSpans(none, none)
    quotes = np.flatnonzero(buffer == _QUOTE)
    opens, closes = quotes[0::2], quotes[1::2]
    is_edge = np.zeros(256, bool)
    is_edge[[ord(delimiter), _LF, _CR, _QUOTE]] = True
    well_opened = is_edge[buffer[opens - 1]]
    well_opened[0] |= opens[0] == 0
    well_closed = is_edge[buffer[np.minimum(closes + 1, len(buffer) - 1)]]
    # Where every quote is well placed they open and close by turns, a doubled
    # quote closing and opening again; one stray quote upsets the turns.
    if well_opened.all() and well_closed.all():
        return QuotedSpans(opens, closes)
    return _spans_one_by_one(data, quotes, delimiter)


def _spans_one_by_one(data: bytes, quotes: np.ndarray, delimiter: str) -> QuotedSpans:
    """Follows the quotes in Python: exact where some are literal text."""
    field_starts = frozenset((ord(delimiter), _LF, _CR))
    opens, closes = [], []
    positions = quotes.tolist()
    count = len(positions)
    i = 0
    while i < count:
        position = positions[i]
        i += 1
        if position and data[position - 1] not in field_starts:
            continue
        opens.append(position)
        while i < count:
            if i + 1 < count and positions[i + 1] == positions[i] + 1:
                i += 2
                continue
            closes.append(positions[i])
            i += 1
            break
    return QuotedSpans(np.array(opens, np.int64), np.array(closes, np.int64))
