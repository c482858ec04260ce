"""ISO 8601 dates and times as texts that compare as the times do."""

from __future__ import annotations

import re

EXPECTED = "an ISO 8601 date or time, e.g. 2013-11-01 or 2013-11-01T06:00:00"
_ISO = re.compile(
    r"(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))"
    r"(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:\.(\d+))?)?Z?)?",
    re.ASCII,
)


def normal(text: str) -> str | None:
    """Returns a time in one form, or None where the text is none.

    A date is its midnight. Offsets from UTC other than Z are not understood: with
    them the order of texts would not be the order of times.
    """
    match = _ISO.fullmatch(text.strip())
    if not match:
        return None
    date, hour, minute, second, fraction = match.groups()
    fraction = (fraction or "").rstrip("0")
    time = f"{date}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    return f"{time}.{fraction}" if fraction else time
