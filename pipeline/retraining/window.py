"""The days that a night trains and judges on."""

from __future__ import annotations

import dataclasses
import datetime

from pipeline.types import UserError

ROLES = ("train", "eval", "test")
"""Splits, in the order in which a window's days belong to them."""

JUDGED = "test"
"""The split on which candidate and champion are judged."""

_DAY = datetime.timedelta(days=1)


@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive days that end with the day of the run.

    The last `test_days` judge candidate and champion, which have seen none of them; the
    `eval_days` before those choose among a candidate's checkpoints; it learns from the
    rest.

    Attributes:
      run_date: The last day.
      days: Number of all days.
      eval_days: At least 1, as test_days; at least one day is left to learn from.
      test_days: See above.
    """

    run_date: datetime.date
    days: int
    eval_days: int
    test_days: int

    def __post_init__(self):
        if min(self.eval_days, self.test_days) < 1:
            raise ValueError("eval and test need a day each")
        if self.eval_days + self.test_days >= self.days:
            raise UserError(
                f"--window_days={self.days} leaves no day to learn from beside"
                f" --eval_days={self.eval_days} and --test_days={self.test_days}"
            )
        if self.run_date.toordinal() < self.days:
            raise UserError(
                f"--run_date={self.run_date}: {self.days} days before it there is no"
                " calendar"
            )

    @property
    def first(self) -> datetime.date:
        return self.run_date - (self.days - 1) * _DAY

    def dates(self) -> tuple[datetime.date, ...]:
        """Returns all days, rising."""
        return tuple(self.first + n * _DAY for n in range(self.days))

    def role(self, date: datetime.date) -> str:
        """Returns the split of a day, one of ROLES; ValueError outside the window."""
        place = (date - self.first).days
        if not 0 <= place < self.days:
            raise ValueError(f"{date} is not in the window")
        if place >= self.days - self.test_days:
            return "test"
        if place >= self.days - self.test_days - self.eval_days:
            return "eval"
        return "train"

    def next(self) -> Window:
        """Returns the window of the day after."""
        return dataclasses.replace(self, run_date=self.run_date + _DAY)
