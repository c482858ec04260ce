"""What format a file has, by its content and, where that leaves a doubt, its name."""

from __future__ import annotations

import json
import os

from pipeline.preprocess.byte_source import LINE_END, ByteSource
from pipeline.preprocess.sources import record_framing
from pipeline.types import ExitCode, UserError

FORMATS = ("csv", "tsv", "jsonl", "parquet", "tfrecord")

_LOOK_BYTES = 64 << 10
_COMPRESSIONS = (".gz", ".bz2", ".zst")
_BY_ENDING = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}


def format_of(path: str) -> str:
    """Returns the format of a file, one of FORMATS.

    Raises:
      UserError: The file cannot be read, is of no format that can be, or leaves a
        doubt.
    """
    try:
        with open(path, "rb") as file:
            magic = file.read(12)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if magic[:4] == b"PAR1":
        return "parquet"
    if record_framing.is_header(magic):
        return "tfrecord"
    by_name = named_format(path)
    try:
        with ByteSource(path) as source:
            start = source.read(_LOOK_BYTES)
    except UserError as error:
        # Of a TFRecord file cut off early the reader says more.
        if by_name == "tfrecord" and error.exit_code is ExitCode.BAD_DATA:
            return by_name
        raise
    if record_framing.is_header(start):
        return "tfrecord"
    if by_name in ("tfrecord", "parquet"):
        if not start:
            return by_name
        raise UserError(
            f"{path} is no {by_name} file, whatever its name says, or its beginning is"
            " damaged; --input_format=... says what it is"
        )
    if _is_json_line(start):
        return "jsonl"
    found = by_name or _by_delimiter(start)
    if found is None:
        raise UserError(
            f"--input: {path}: neither its name nor its first line says what it is;"
            f" give --input_format={'|'.join(FORMATS)} or --delimiter=..."
        )
    return found


def named_format(path: str) -> str | None:
    """Returns the format that a file's name states, if it states one."""
    name = os.path.basename(path).lower()
    for ending in _COMPRESSIONS:
        name = name.removesuffix(ending)
    return _BY_ENDING.get(os.path.splitext(name)[1])


def _first_line(start: bytes) -> bytes:
    return LINE_END.split(start.lstrip(), maxsplit=1)[0]


def _is_json_line(start: bytes) -> bool:
    line = _first_line(start)
    if not line.startswith(b"{"):
        return False
    if len(line) == len(start.lstrip()) and len(start) >= _LOOK_BYTES // 2:
        return line[1:].lstrip().startswith(b'"')  # Too long a line to see its end.
    try:
        return isinstance(json.loads(line.decode(errors="replace")), dict)
    except (ValueError, RecursionError):
        return False


def _by_delimiter(start: bytes) -> str | None:
    line = _first_line(start)
    has_tab, has_comma = b"\t" in line, b"," in line
    if has_tab == has_comma:
        return None
    return "tsv" if has_tab else "csv"
