"""What workers report: kinds and values, in one file of JSON lines.

No DoFn raises: with several worker processes an exception in one makes Beam's local
runner hang. So failures are reported, and the caller raises them.
"""

from __future__ import annotations

import collections
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline import files
from pipeline.types import ExitCode, UserError

FAILURE = "failure"

Report = Mapping[str, list[Any]]
"""Kind to its values, in any order."""


def failure(error: Exception) -> dict[str, Any]:
    """Returns a caught exception as a value."""
    by_user = isinstance(error, UserError)
    return {
        "message": str(error) if by_user else traceback.format_exc(),
        "exit_code": int(error.exit_code) if by_user else None,
    }


def write(path: str, report: Iterable[tuple[str, Any]]) -> None:
    """Writes pairs of kind and value."""
    lines = [files.canonical_json(entry) + "\n" for entry in report]
    files.write_atomically(path, "".join(lines))


def read(path: str) -> Report:
    """Returns the values by kind."""
    found: dict[str, list[Any]] = collections.defaultdict(list)
    for kind, value in files.read_json_lines(path):
        found[kind].append(value)
    return found


def is_bug(reported: Mapping[str, Any]) -> bool:
    """Whether a failure is none of the user's."""
    return reported["exit_code"] is None


def user_error(reported: Mapping[str, Any]) -> UserError:
    return UserError(reported["message"], ExitCode(reported["exit_code"]))


def raise_first(failures: Sequence[Mapping[str, Any]]) -> None:
    """Raises a bug before a user's mistake: it is what needs attention."""
    for reported in sorted(failures, key=is_bug, reverse=True):
        if is_bug(reported):
            raise RuntimeError(f"in a worker:\n{reported['message']}")
        raise user_error(reported)
