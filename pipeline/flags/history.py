"""Flags: What rollback goes back to, and how much status shows."""

from __future__ import annotations

import dataclasses

from absl import flags

from pipeline.flags.numbers import count


@dataclasses.dataclass(frozen=True)
class HistoryFlags:
    """Settings of rollback and status, as given.

    Attributes:
      to: Version to go back to, or None.
      last: Number of runs that status shows.
    """

    to: int | None = None
    last: int = 10


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "to",
        None,
        "Version that rollback goes back to; by default the champion before.",
        lower_bound=1,
        upper_bound=2**63 - 1,
        flag_values=values,
    )
    count(values, "last", 10, "Number of last runs that status shows.")


def read(values: flags.FlagValues) -> HistoryFlags:
    return HistoryFlags(values.to, values.last)
