"""Checks of raw files that every command makes before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.preprocess import csv_source
from pipeline.types import Column, UserError

_MAX_LISTED = 20


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


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
        try:
            names = csv_source.read_header(path)
        except UserError as error:
            raise UserError(f"--input: {error}", error.exit_code) from error
        absent = [name for name in wanted if name not in names]
        if absent:
            raise UserError(
                f"--input: {path} has no column {_listed(absent)}, which {source}"
                f" declares; it has {_listed(names)}"
            )
