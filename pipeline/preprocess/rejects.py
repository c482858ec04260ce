"""Rejected rows as JSON lines: nothing of a row is lost."""

from __future__ import annotations

import json

from pipeline.preprocess.csv_pieces import Reject


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
