"""Hyper-parameters of models: typed, with defaults, read from `name=value,...`."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

from pipeline.types import UserError

_T = TypeVar("_T")
_BOOLS = {"true": True, "yes": True, "false": False, "no": False}
_MAX_WIDTH = 2**20


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_widths(hidden_units: tuple[int, ...]) -> None:
    _check(
        bool(hidden_units) and all(0 < n <= _MAX_WIDTH for n in hidden_units),
        f"hidden_units needs at least one width, each from 1 to {_MAX_WIDTH}",
    )


@dataclasses.dataclass(frozen=True)
class WideDeep:
    """Hyper-parameters of the premade wide & deep model.

    Attributes:
      hidden_units: Widths of the deep part's layers.
      dropout: Share of activations dropped in training, in [0, 1).
      batch_norm: Whether the deep layers are batch-normalised.
      learning_rate: Of the deep part (Adam).
      wide_learning_rate: Of the wide part (FTRL).
      wide_l1: L1 strength of the wide part.
      wide_l2: L2 strength of the wide part.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ("hidden_units", "batch_norm")
    """Those with which the model's variables change, so that no checkpoint fits."""

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.0
    batch_norm: bool = False
    learning_rate: float = 0.001
    wide_learning_rate: float = 0.05
    wide_l1: float = 0.0
    wide_l2: float = 0.0

    def __post_init__(self):
        _check_widths(self.hidden_units)
        _check(0 <= self.dropout < 1, "dropout must be in [0, 1)")
        for name in ("learning_rate", "wide_learning_rate"):
            _check(getattr(self, name) > 0, f"{name} must be above 0")
        for name in ("wide_l1", "wide_l2"):
            _check(getattr(self, name) >= 0, f"{name} may not be below 0")


@dataclasses.dataclass(frozen=True)
class KerasWideDeep:
    """Hyper-parameters of the wide & deep model from tf.keras layers.

    Attributes:
      hidden_units: Widths of the deep part's layers.
      dropout: Share of activations dropped in training, in [0, 1).
      batch_norm_momentum: Of the moving averages, in (0, 1).
      learning_rate: Of Adam.
      l2: L2 strength of the wide part's weights.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ("hidden_units",)

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.1
    batch_norm_momentum: float = 0.99
    learning_rate: float = 0.001
    l2: float = 0.0

    def __post_init__(self):
        _check_widths(self.hidden_units)
        _check(0 <= self.dropout < 1, "dropout must be in [0, 1)")
        _check(
            0 < self.batch_norm_momentum < 1, "batch_norm_momentum must be in (0, 1)"
        )
        _check(self.learning_rate > 0, "learning_rate must be above 0")
        _check(self.l2 >= 0, "l2 may not be below 0")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yields name and value of each setting; commas in brackets divide none.

    Raises:
      ValueError: The text is not of the form name=value,name=[value,value].
    """
    parts = [""]
    inside = False
    for character in text:
        if character in "[]":
            if inside == (character == "["):
                raise ValueError
            inside = not inside
        if character == "," and not inside:
            parts.append("")
        else:
            parts[-1] += character
    if inside:
        raise ValueError
    for part in filter(None, map(str.strip, parts)):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError
        yield name.strip(), value.strip()


def _convert(text: str, kind: Any) -> Any:
    """Returns the value that a text stands for, or raises ValueError or KeyError."""
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        return tuple(_convert(t.strip(), element) for t in text.split(",") if text)
    if kind is bool:
        return _BOOLS[text.lower()]
    value = kind(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _described(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return "a list such as [64,32]"
    return {bool: "true or false", float: "a finite number"}.get(kind, "a whole number")


def parse(text: str, kind: type[_T]) -> _T:
    """Reads `name=value,name=[a,b]` into a hyper-parameter dataclass.

    Raises:
      UserError: Naming the flag, the hyper-parameter and what is allowed.
    """
    try:
        given = list(_settings(text))
    except ValueError:
        raise UserError(
            f"--hparams={text}: not of the form name=value,name=[value,value]"
        ) from None
    hints = typing.get_type_hints(kind)
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    values = {}
    for name, value in given:
        if name not in kinds:
            raise UserError(
                f"--hparams: {name!r} is unknown to this model; it has"
                f" {', '.join(kinds)}"
            )
        if name in values:
            raise UserError(f"--hparams: {name} stands twice")
        try:
            values[name] = _convert(value, kinds[name])
        except (ValueError, KeyError, OverflowError):
            raise UserError(
                f"--hparams: {name}={value} is not {_described(kinds[name])}"
            ) from None
    try:
        return kind(**values)
    except ValueError as error:
        raise UserError(f"--hparams: {error}") from None
