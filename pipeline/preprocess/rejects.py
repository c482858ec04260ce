"""Rejected rows, and how they are kept: nothing of a row is lost."""

from __future__ import annotations

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Reject:
    """A row that is not used, and why.

    Attributes:
      path: File.
      line: Physical line on which the row begins, or its number in a file without
        lines; both from 1.
      column: The column at fault; None when the row as a whole is broken.
      reason: What is wrong, as it is shown to the user.
      text: The row's bytes without its line end; JSON of its values where the file
        is no text. Of a text row that is broken off (quote never closed, too long)
        its first line, its first 64 KiB at most.
    """

    path: str
    line: int
    column: str | None
    reason: str
    text: bytes


def to_json(reject: Reject) -> str:
    r"""Returns a line of JSON: file, line, column, reason and the row's full text.

    Bytes of the text that are no UTF-8 stand as \xNN.
    """
    return json.dumps(
        {
            "file": reject.path,
            "line": reject.line,
            "column": reject.column,
            "reason": reject.reason,
            "text": reject.text.decode(errors="backslashreplace"),
        },
        ensure_ascii=False,
    )
