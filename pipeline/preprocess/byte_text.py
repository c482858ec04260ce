"""Any bytes as text that people can read and JSON can hold, and back."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(\\|x([0-9a-f]{2}))")


def to_text(value: bytes) -> str:
    r"""UTF-8 as it is, other bytes as \xNN, and a backslash as two."""
    return value.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def to_bytes(text: str) -> bytes:
    """The inverse of `to_text`."""
    parts = []
    start = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[start : match.start()].encode())
        code = match.group(2)
        parts.append(b"\\" if code is None else bytes([int(code, 16)]))
        start = match.end()
    parts.append(text[start:].encode())
    return b"".join(parts)
