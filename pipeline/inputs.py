"""What every command does with raw files before it begins."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline import files
from pipeline.preprocess import typed_values
from pipeline.preprocess.sources.base import Source
from pipeline.types import Column, UserError

_log = logging.getLogger(__name__)
_MAX_LISTED = 20


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


def digests(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Returns what files hold, as a manifest's `inputs` says it."""
    return [
        {
            "path": path,
            "bytes": os.path.getsize(path),
            "sha256": files.digest_file(path),
        }
        for path in paths
    ]


def check_columns(
    sources: Sequence[Source], columns: Iterable[Column], source: str
) -> None:
    """Checks that each file has all columns, of types that can be used.

    Where rows name their own columns (JSON lines, TFRecord), only the first rows are
    looked at: a required column must occur in some file; another may be rare.

    Args:
      sources: The raw files.
      columns: The wanted columns.
      source: What asks for them, for the message.

    Raises:
      UserError: A file lacks one, has one of a type that cannot be used, or cannot be
        read.
    """
    columns = tuple(columns)
    wanted = [column.name for column in columns]
    open_headers = []
    for file in sources:
        try:
            header = file.header()
        except UserError as error:
            raise UserError(f"--input: {error}", error.exit_code) from error
        if not header.complete:
            open_headers.append((file.path, header.names))
            continue
        absent = [name for name in wanted if name not in header.names]
        if absent:
            raise UserError(
                f"--input: {file.path} has no column {_listed(absent)}, which"
                f" {source} declares; it has {_listed(header.names)}"
            )
        for name in wanted:
            if name in header.types:
                typed_values.check_type(file.path, name, header.types[name])
    seen = {name: None for _, names in open_headers for name in names}
    if not seen:
        return
    absent = [c.name for c in columns if c.name not in seen and c.required]
    if absent:
        raise UserError(
            f"--input: the first rows of {open_headers[0][0]} have no column"
            f" {_listed(absent)}, which {source} declares as required; they have"
            f" {_listed(tuple(seen))}"
        )
    for name in (c.name for c in columns if c.name not in seen):
        _log.warning("column %s occurs in none of the first rows", name)
