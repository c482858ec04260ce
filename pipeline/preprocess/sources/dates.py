"""The date of a run in the paths of its files: {date} and {date:%Y%m%d}."""

from __future__ import annotations

import datetime
import re

from pipeline.types import UserError

_PLACE = re.compile(r"\{date(?::([^{}]*))?\}")


def fill(flag: str, value: str, run_date: str | None) -> str:
    """Puts the date of the run in its places.

    Args:
      flag: Name of the flag, for the message.
      value: Text with any number of {date} or {date:FORMAT}, FORMAT as for strftime.
      run_date: A date as YYYY-MM-DD; None where the flag is not given.

    Raises:
      UserError: There is a place and no date.
    """
    place = _PLACE.search(value)
    if place is None:
        return value
    if run_date is None:
        raise UserError(
            f"--{flag} has {place.group()} in it; give the date, e.g."
            " --run_date=2013-06-01"
        )
    date = datetime.date.fromisoformat(run_date)
    return _PLACE.sub(lambda match: date.strftime(match.group(1) or "%Y-%m-%d"), value)
