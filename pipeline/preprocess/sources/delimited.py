"""Delimited text: CSV, TSV and the like."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pipeline.preprocess import csv_source
from pipeline.preprocess.sources import text_pieces
from pipeline.preprocess.sources.base import FilePiece, Header, RawBatch
from pipeline.types import Column


@dataclasses.dataclass(frozen=True)
class DelimitedSource:
    """A delimited file, plain or compressed.

    Attributes:
      path: The file.
      delimiter: One ASCII character.
      names: The column names, where the file has no line with them.
    """

    path: str
    delimiter: str = ","
    names: tuple[str, ...] | None = None

    def header(self) -> Header:
        if self.names is None:
            names = csv_source.read_header(self.path, delimiter=self.delimiter)
            return Header(names)
        csv_source.check_readable(self.path)
        return Header(self.names)

    def pieces(self, piece_bytes: int) -> Sequence[FilePiece]:
        return text_pieces.plan_records(self.path, self.delimiter, piece_bytes)

    def read(
        self,
        piece: FilePiece,
        columns: Sequence[str],
        declared: Sequence[Column] = (),
    ) -> Iterator[RawBatch]:
        del declared  # All text is read as it is.
        return csv_source.read_batches(
            self.path,
            columns,
            delimiter=self.delimiter,
            names=self.names,
            piece=piece,
        )
