"""What each hyper-parameter means, read from the dataclasses that define them."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

_SECTION = re.compile(r"^Attributes:\n((?:[ \t]+.*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^  (\w+): ", re.MULTILINE)
_TYPES: Mapping[Any, str] = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A hyper-parameter, for people.

    Attributes:
      name: As `--hparams` takes it.
      type: What kind of value it is.
      default: As `--hparams` takes it.
      meaning: What the dataclass's docstring says of it, on one line.
    """

    name: str
    type: str
    default: str
    meaning: str


def _spelled_out(text: str, names: Mapping[str, Any]) -> str:
    """Returns the text with the choices that its constants stand for."""

    def choices(match: re.Match) -> str:
        value = names.get(match.group())
        return ", ".join(value) if isinstance(value, tuple) else match.group()

    return re.sub(r"\b_?[A-Z][A-Z_]+\b", choices, text)


def _meanings(kind: type) -> dict[str, str]:
    """Returns what the "Attributes" of a class say, by name."""
    section = _SECTION.search(inspect.cleandoc(kind.__doc__ or "") + "\n")
    if section is None:
        return {}
    parts = _ENTRY.split(section.group(1))[1:]
    constants = vars(sys.modules[kind.__module__])
    return {
        name: _spelled_out(" ".join(meaning.split()), constants)
        for name, meaning in zip(parts[::2], parts[1::2], strict=True)
    }


def _described(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return f"list of {_described(arguments[0])}s"
    if origin is typing.Literal:
        return " or ".join(map(str, arguments))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(
            "nothing" if a is type(None) else _described(a) for a in arguments
        )
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return " or ".join(str(member.value) for member in kind)
    return _TYPES[kind]


def as_given(value: Any) -> str:
    """Returns a value as `--hparams` takes it."""
    if isinstance(value, tuple):
        return f"[{','.join(map(as_given, value))}]"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings(kind: type) -> tuple[Setting, ...]:
    """Returns the hyper-parameters of a dataclass: its own, then those of its bases.

    Raises:
      ValueError: A docstring doesn't say what one of them means, or tells of one that
        there is not.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    found: dict[str, Setting] = {}
    for base in filter(dataclasses.is_dataclass, kind.__mro__):
        for name, meaning in _meanings(base).items():
            if name not in fields:
                raise ValueError(f"{base.__name__}: there is no field {name}")
            setting = Setting(
                name,
                _described(hints[name]),
                as_given(fields[name].default),
                meaning,
            )
            found.setdefault(name, setting)
    if odd := fields.keys() - found.keys():
        raise ValueError(f"{kind.__name__}: no Attributes tell of {', '.join(odd)}")
    return tuple(found.values())
