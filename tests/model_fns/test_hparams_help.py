"""What is said of hyper-parameters comes from the dataclasses, so it cannot go stale."""

from __future__ import annotations

import dataclasses
import enum
from typing import Literal

import pytest

from model_fns import hparams, hparams_help, registry

CHOICES = ("oak", "ash")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True)
class Base:
    """A base.

    Attributes:
      rate: A rate, told
        in two lines.
      tree: One of CHOICES.
    """

    rate: float = 0.25
    tree: str = "oak"


@dataclasses.dataclass(frozen=True)
class Whole(Base):
    """All kinds.

    Attributes:
      count: Of things.
      widths: Of layers: from left to right.
      on: Whether.
      colour: A colour.
      side: A side.
      limit: At most.

    Raises:
      nothing: Not an attribute.
    """

    count: int = 3
    widths: tuple[int, ...] = (64, 32)
    on: bool = False
    colour: Colour = Colour.BLUE
    side: Literal["left", "right"] = "left"
    limit: int | None = None


def test_its_own_settings_come_first():
    found = hparams_help.settings(Whole)
    assert [dataclasses.astuple(setting) for setting in found] == [
        ("count", "whole number", "3", "Of things."),
        (
            "widths",
            "list of whole numbers",
            "[64,32]",
            "Of layers: from left to right.",
        ),
        ("on", "true or false", "false", "Whether."),
        ("colour", "red or blue", "blue", "A colour."),
        ("side", "left or right", "left", "A side."),
        ("limit", "whole number or nothing", "none", "At most."),
        ("rate", "number", "0.25", "A rate, told in two lines."),
        ("tree", "text", "oak", "One of oak, ash."),
    ]


@dataclasses.dataclass(frozen=True)
class Silent(Base):
    """Says nothing of its own field."""

    more: int = 1


@dataclasses.dataclass(frozen=True)
class Stale(Base):
    """Tells of what is gone.

    Attributes:
      gone: It was here.
    """


def test_a_field_without_a_meaning_is_an_error():
    with pytest.raises(ValueError, match="Silent: .*tell of.* more"):
        hparams_help.settings(Silent)


def test_a_meaning_without_a_field_is_an_error():
    with pytest.raises(ValueError, match="Stale: .*no field gone"):
        hparams_help.settings(Stale)


@pytest.mark.parametrize("name", registry.MODELS)
def test_defaults_are_written_as_they_may_be_given(name):
    kind = registry.find(name).hparams
    given = [
        f"{setting.name}={setting.default}"
        for setting in hparams_help.settings(kind)
        if setting.default != "[]"
    ]
    assert hparams.parse(",".join(given), kind) == kind()
