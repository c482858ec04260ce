"""Checks of raw files that every command makes before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.preprocess import csv_source
from pipeline.types import Column, UserError


def check_columns(paths: Sequence[str], columns: Iterable[Column], source: str) -> None:
    """Checks that each file has all columns.

    Args:
      paths: CSV files with a header.
      columns: The wanted columns.
      source: What asks for them, for the message.

    Raises:
      UserError: A file lacks one, or has no header that can be read.
    """
    wanted = [column.name for column in columns]
    for path in paths:
        names = csv_source.read_header(path)
        absent = [name for name in wanted if name not in names]
        if absent:
            raise UserError(
                f"--input: {path} has no column {', '.join(absent)}, which {source}"
                f" declares; it has {', '.join(names)}"
            )
