"""What is searched: values or a range for each hyper-parameter."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping

from pipeline.types import UserError

_RANGE = re.compile(r"\s*(\S+?)\s*\.\.\s*([^\s:]+)\s*(:\s*log\s*)?")


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of some values, as text."""

    values: tuple[str, ...]

    def draw(self, source: random.Random) -> str:
        return source.choice(self.values)


@dataclasses.dataclass(frozen=True)
class Range:
    """A number from `low` to `high`, both allowed.

    Attributes:
      log: Whether the logarithm is drawn evenly.
      whole: Whether the number is a whole one.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def draw(self, source: random.Random) -> str:
        if self.log:
            value = math.exp(source.uniform(math.log(self.low), math.log(self.high)))
            value = min(max(value, self.low), self.high)
        elif self.whole:
            return str(source.randint(int(self.low), int(self.high)))
        else:
            value = source.uniform(self.low, self.high)
        return str(round(value)) if self.whole else f"{value:.6g}"


Space = Mapping[str, Choice | Range]
Parameters = dict[str, str]


def _range(name: str, match: re.Match) -> Range:
    low, high, log = match.groups()
    try:
        numbers = float(low), float(high)
    except ValueError:
        raise UserError(
            f"--search: {name}: {low}..{high} is no range of numbers"
        ) from None
    if not all(map(math.isfinite, numbers)) or not numbers[0] < numbers[1]:
        raise UserError(f"--search: {name}: the range {low}..{high} is empty")
    if log and numbers[0] <= 0:
        raise UserError(f"--search: {name}: a range with :log must begin above 0")
    whole = all(re.fullmatch(r"[+-]?\d+", text) for text in (low, high))
    return Range(*numbers, log=bool(log), whole=whole)


def parse(text: str) -> Space:
    """Reads `name=LOW..HIGH; name=LOW..HIGH:log; name=A|B|C`.

    A range between whole numbers gives whole numbers.

    Raises:
      UserError: It is not of this form.
    """
    found: dict[str, Choice | Range] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name or not value:
            raise UserError(
                f"--search: {part!r} is not of the form name=LOW..HIGH or name=A|B|C"
            )
        if name in found:
            raise UserError(f"--search: {name} stands twice")
        match = _RANGE.fullmatch(value)
        if match:
            found[name] = _range(name, match)
            continue
        values = tuple(map(str.strip, value.split("|")))
        if not all(values) or len(set(values)) != len(values):
            raise UserError(f"--search: {name}: the values must differ, none empty")
        found[name] = Choice(values)
    if not found:
        raise UserError(
            "--search is needed, e.g. --search='learning_rate=0.001..0.1:log;"
            " hidden_units=[64]|[128,64]'"
        )
    return found


def grid(space: Space) -> Iterator[Parameters]:
    """Yields all combinations; the last name changes fastest.

    Raises:
      UserError: There is a range.
    """
    for name, values in space.items():
        if isinstance(values, Range):
            raise UserError(
                f"--search_method=grid: {name} is a range; give values, {name}=A|B|C"
            )
    for values in itertools.product(*(choice.values for choice in space.values())):
        yield dict(zip(space, values, strict=True))


def draw(space: Space, seed: int, number: int) -> Parameters:
    """Returns the parameters of a random trial: a function of seed and number."""
    source = random.Random(f"{seed}/{number}")
    return {name: values.draw(source) for name, values in space.items()}
