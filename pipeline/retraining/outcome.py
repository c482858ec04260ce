"""How a night ended."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from pipeline.types import ExitCode


class End(enum.Enum):
    """How a run of retrain ends."""

    PUBLISHED = "published"
    NOT_BLESSED = "not_blessed"
    TOO_FEW_ROWS = "too_few_rows"
    NOTHING_TO_DO = "nothing_to_do"
    BAD_DATA = "bad_data"
    LOCKED = "locked"
    FAILED = "failed"


FINAL = (End.PUBLISHED, End.NOT_BLESSED, End.TOO_FEW_ROWS)
"""After these there is nothing more to do for the same request."""

_CODES = {
    End.PUBLISHED: ExitCode.OK,
    End.NOT_BLESSED: ExitCode.NOT_BLESSED,
    End.TOO_FEW_ROWS: ExitCode.TOO_FEW_ROWS,
    End.NOTHING_TO_DO: ExitCode.NOTHING_TO_DO,
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
      end: How it ended.
      exit_code: Of the command.
      run_date: Its date.
      message: One line for people.
      version: The version that was published, or None.
      champion: Version of the champion now, or None.
      verdict: Path of the verdict file, or None.
      metrics: Metrics of the candidate, if it was judged.
      champion_metrics: Those of the champion on the same rows.
      warnings: What the gates let pass.
      seconds: How long the run took.
    """

    end: End
    exit_code: int
    run_date: str
    message: str
    version: int | None = None
    champion: int | None = None
    verdict: str | None = None
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    champion_metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        value = dataclasses.asdict(self)
        value["outcome"] = value.pop("end").value
        return {"outcome": value.pop("outcome"), **value}


def code_of(end: End) -> ExitCode:
    """Returns the exit code of a run that came to its end."""
    return _CODES[end]


def end_of(code: int) -> End:
    """Returns how a run that failed with an exit code ended."""
    if code == ExitCode.BAD_DATA:
        return End.BAD_DATA
    return End.LOCKED if code == ExitCode.LOCKED else End.FAILED
