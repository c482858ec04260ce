"""What every source of rows has in common."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pipeline.preprocess.rejects import Reject
from pipeline.types import Column


@dataclasses.dataclass(frozen=True)
class Header:
    """What is known of a file's columns without reading it all.

    Attributes:
      names: The columns, in the order of the file.
      types: Their types, where the format knows them.
      complete: Whether there can be no others. Where each row names its own columns
        (JSON lines, TFRecord), one may occur first far behind the beginning.
    """

    names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = dataclasses.field(default_factory=dict)
    complete: bool = True


@dataclasses.dataclass(frozen=True)
class FilePiece:
    """A part of a file that is made up of whole rows.

    Attributes:
      index: Its place among the pieces of the file, from 0.
      start: Where it begins: a byte, or a row group of a Parquet file.
      end: Where the next one begins; None for the end of the file.
      first: Number of its first line or row, the first of the file being 1.
    """

    index: int = 0
    start: int = 0
    end: int | None = None
    first: int = 1


WHOLE = FilePiece()
"""The piece that is a whole file."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """The rest of a damaged file, dropped because the user asked for it.

    Attributes:
      path: File.
      record: Number of the first record that is lost, the first being 1.
      reason: What is lost and why, for people.
    """

    path: str
    record: int
    reason: str


class RowTexts(Protocol):
    """The full text of each row of a batch, for rejects."""

    def __call__(self, row: int) -> bytes: ...


@dataclasses.dataclass(frozen=True, eq=False)
class LineTexts:
    """Rows that stand in a piece of text, from `starts` to `ends`."""

    chunk: bytes
    starts: np.ndarray
    ends: np.ndarray

    def __call__(self, row: int) -> bytes:
        return self.chunk[self.starts[row] : self.ends[row]]


@dataclasses.dataclass(frozen=True, eq=False)
class RawBatch:
    """Some consecutive rows of a file.

    Attributes:
      path: File.
      table: The asked columns of the good rows: binary text, or typed values where
        the format has types. A column that the rows do not have is all null.
      lines: int64, the physical line on which each row begins, or its number in a
        file without lines (both from 1).
      rejects: Structurally bad rows among them, in file order.
      rows_read: Number of rows and rejects; blank lines do not count.
      texts: The text of a row as it stands in the file (without its line end), or
        as JSON where the file is no text.
      loss: What was dropped behind these rows.
      position: How many bytes of the file, as it is stored, have been read; 0 where
        that is not known.
    """

    path: str
    table: pa.RecordBatch
    lines: np.ndarray
    rejects: tuple[Reject, ...]
    rows_read: int
    texts: RowTexts
    loss: Loss | None = None
    position: int = 0

    def text(self, row: int) -> bytes:
        """The full text of a row."""
        return self.texts(row)


class Source(Protocol):
    """A raw file and how it is read; it can be pickled.

    Attributes:
      path: The file.
    """

    path: str

    def header(self) -> Header:
        """Returns the columns.

        Raises:
          UserError: The file cannot be read or is not of this format.
        """

    def pieces(self, piece_bytes: int) -> Sequence[FilePiece]:
        """Cuts the file into pieces of about that size, where it can be cut.

        The pieces, read one after the other, give the rows, line numbers and rejects
        of the whole file.
        """

    def read(
        self,
        piece: FilePiece,
        columns: Sequence[str],
        declared: Sequence[Column] = (),
    ) -> Iterator[RawBatch]:
        """Reads the rows of a piece.

        Args:
          piece: One of `pieces`, or WHOLE.
          columns: Names of the wanted columns, at least one.
          declared: What is known of them; it may speed up reading.

        Raises:
          UserError: The file cannot be read, or (with BAD_DATA) is damaged.
        """


def row_as_json(row: Mapping[str, Any]) -> bytes:
    r"""Returns a row of typed values as JSON; bytes that are no UTF-8 as \xNN."""

    def plain(value: Any) -> str:
        if isinstance(value, bytes):
            return value.decode(errors="backslashreplace")
        return str(value)

    return json.dumps(row, ensure_ascii=False, default=plain).encode(
        errors="backslashreplace"
    )
