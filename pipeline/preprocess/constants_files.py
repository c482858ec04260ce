r"""Constants of the model's graph as files that people can read and compare.

    constants.json               scalings, boundaries and sizes of vocabularies
    vocabularies/FEATURE.txt     a term a line; the line's number from 0 is its id

A term may be any bytes. In a vocabulary file \\ stands for a backslash, \n for a
line feed, \r for a carriage return, and a line \e for the empty term. A file never
begins with a byte order mark: where the first term does, its first byte is \xef. A
blank or tab that ends a term is \x20 or \x09, for one that nobody sees in a file
edited by hand would hide the term.
Nothing else is escaped, so UTF-8 text stands as it is. Every line ends in a line
feed. In FEATURE, characters other than letters, digits and _.-~ are written as %XX.
"""

from __future__ import annotations

import math
import os
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from pipeline import files
from pipeline.types import Constants, Scaling, UserError

_CONSTANTS = "constants.json"
_VOCABULARIES = "vocabularies"
_BOM = b"\xef\xbb\xbf"
_BLANKS = (b" ", b"\t")
_EMPTY_TERM = b"\\e"
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
_ESCAPES |= {b"\\xef": b"\xef", b"\\x20": b" ", b"\\x09": b"\t"}
_ESCAPE = re.compile(rb"\\(?:x(?:ef|20|09)|.?)", re.DOTALL)


def write_constants(directory: str, constants: Constants) -> None:
    """Writes constants into an existing directory."""
    for name, terms in constants.vocabularies.items():
        path = vocabulary_path(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_vocabulary(path, terms)
    value = {
        "scalings": {
            name: {"shift": scaling.shift, "factor": scaling.factor}
            for name, scaling in constants.scalings.items()
        },
        "boundaries": {n: list(cuts) for n, cuts in constants.boundaries.items()},
        "vocabularies": {n: len(t) for n, t in constants.vocabularies.items()},
    }
    files.write_json(os.path.join(directory, _CONSTANTS), value)


def read_constants(directory: str) -> Constants:
    """Reads what `write_constants` has written.

    Raises:
      UserError: A file is missing or damaged; the message says where.
    """
    path = os.path.join(directory, _CONSTANTS)
    value = files.read_json(path)
    try:
        scalings = {
            name: Scaling(_number(s["shift"]), _number(s["factor"]))
            for name, s in value["scalings"].items()
        }
        boundaries = {
            name: tuple(map(_number, cuts))
            for name, cuts in value["boundaries"].items()
        }
        sizes = dict(value["vocabularies"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(
            f"{path} is damaged ({type(error).__name__}: {error}); run preprocess again"
        ) from error
    vocabularies = {
        name: read_vocabulary(vocabulary_path(directory, name), size)
        for name, size in sizes.items()
    }
    return Constants(scalings, boundaries, vocabularies)


def vocabulary_path(directory: str, feature: str) -> str:
    """The vocabulary file of a feature."""
    name = urllib.parse.quote(feature, safe="") + ".txt"
    return os.path.join(directory, _VOCABULARIES, name)


def write_vocabulary(path: str, terms: Sequence[bytes]) -> None:
    """Writes terms, the most frequent first.

    Raises:
      ValueError: There are no terms, or one stands twice.
    """
    if not terms or len(set(terms)) != len(terms):
        raise ValueError(f"{path}: terms must be there and differ")
    content = b"".join(_escape(term) + b"\n" for term in terms)
    if content.startswith(_BOM):
        content = b"\\xef" + content[1:]
    files.write_atomically(path, content)


def read_vocabulary(path: str, expected_size: int | None = None) -> tuple[bytes, ...]:
    """Reads the terms of a vocabulary file.

    Args:
      path: The file.
      expected_size: Number of terms according to the metadata; None for any.

    Raises:
      UserError: The file is missing or is not as `write_vocabulary` writes it; the
        message names the file and the line (from 1).
    """
    try:
        with open(path, "rb") as f:
            content = f.read()
    except OSError as error:
        raise UserError(f"cannot read vocabulary {path}: {error}") from error
    if not content:
        raise UserError(f"vocabulary {path} is empty")
    if content.startswith(_BOM):
        raise UserError(
            f"{path}, line 1: begins with a byte order mark, which would belong to"
            " the first term; save the file without it"
        )
    lines = content.split(b"\n")
    if lines.pop():
        raise UserError(
            f"{path}, line {len(lines) + 1}: the last line does not end in a line"
            " feed, so the file may be cut short"
        )
    first_lines: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        term = _term(path, number, line)
        first = first_lines.setdefault(term, number)
        if first != number:
            raise UserError(f"{path}, line {number}: the same term as line {first}")
    if expected_size is not None and len(lines) != expected_size:
        raise UserError(
            f"{path}, line {len(lines)}: the file ends after {len(lines)} terms, but"
            f" {_CONSTANTS} says {expected_size}; it was changed after preprocessing"
        )
    return tuple(first_lines)


def _escape(term: bytes) -> bytes:
    if not term:
        return _EMPTY_TERM
    escaped = term.replace(b"\\", b"\\\\")
    escaped = escaped.replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    if escaped[-1:] in _BLANKS:
        escaped = escaped[:-1] + b"\\x%02x" % escaped[-1]
    return escaped


def _term(path: str, number: int, line: bytes) -> bytes:
    if not line:
        raise UserError(
            f"{path}, line {number}: blank; the empty term is written"
            f" {_EMPTY_TERM.decode()}"
        )
    if b"\r" in line:
        raise UserError(
            f"{path}, line {number}: holds a carriage return, as files saved on"
            " Windows do; a line ends in a line feed alone"
        )
    if line[-1:] in _BLANKS:
        raise UserError(
            f"{path}, line {number}: ends in a blank; remove it, or write"
            rf" \x{line[-1]:02x} in its place if the term ends in one"
        )
    if line == _EMPTY_TERM:
        return b""
    if b"\\" not in line:
        return line

    def unescape(match: re.Match[bytes]) -> bytes:
        if match.group() not in _ESCAPES:
            raise UserError(
                f"{path}, line {number}: {match.group().decode('latin-1')} is no"
                r" escape; a backslash is written \\"
            )
        return _ESCAPES[match.group()]

    return _ESCAPE.sub(unescape, line)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value} is no finite number")
    return float(value)
