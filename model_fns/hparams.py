"""Hyper-parameters of models: typed, with defaults, read from `name=value,...`."""

from __future__ import annotations

import dataclasses
import re
import typing
from typing import Any, TypeVar

import yaml

from pipeline.types import UserError

_T = TypeVar("_T")
_NAME = re.compile(r"(?:^|(?<=,))\s*([A-Za-z_]\w*)\s*=")


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


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

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.0
    batch_norm: bool = False
    learning_rate: float = 0.001
    wide_learning_rate: float = 0.05
    wide_l1: float = 0.0
    wide_l2: float = 0.0

    def __post_init__(self):
        _check(
            all(n > 0 for n in self.hidden_units) and bool(self.hidden_units),
            "hidden_units needs at least one width above 0",
        )
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

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.1
    batch_norm_momentum: float = 0.99
    learning_rate: float = 0.001
    l2: float = 0.0

    def __post_init__(self):
        _check(
            all(n > 0 for n in self.hidden_units) and bool(self.hidden_units),
            "hidden_units needs at least one width above 0",
        )
        _check(0 <= self.dropout < 1, "dropout must be in [0, 1)")
        _check(0 < self.batch_norm_momentum < 1, "batch_norm_momentum: (0, 1)")
        _check(self.learning_rate > 0, "learning_rate must be above 0")
        _check(self.l2 >= 0, "l2 may not be below 0")


def _convert(name: str, value: Any, kind: Any) -> Any:
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        values = value if isinstance(value, list) else [value]
        return tuple(_convert(name, v, element) for v in values)
    if kind is float and isinstance(value, str):
        # YAML 1.1 reads 1e-3 as text.
        value = float(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{name}={value!r} is not of type {kind.__name__}")
    return value


def parse(text: str, kind: type[_T]) -> _T:
    """Reads `name=value,name=[a,b]` into a hyper-parameter dataclass.

    Raises:
      UserError: Naming the flag, the hyper-parameter and what is allowed.
    """
    try:
        given = yaml.safe_load("{" + _NAME.sub(r" \1: ", text) + "}")
    except yaml.YAMLError:
        raise UserError(
            f"--hparams={text}: not of the form name=value,name=[value,value]"
        ) from None
    kinds = typing.get_type_hints(kind)
    values = {}
    for name, value in given.items():
        if name not in kinds:
            raise UserError(
                f"--hparams: {name!r} is unknown to this model; it has"
                f" {', '.join(kinds)}"
            )
        try:
            values[name] = _convert(name, value, kinds[name])
        except ValueError as error:
            raise UserError(f"--hparams: {error}") from None
    try:
        return kind(**values)
    except ValueError as error:
        raise UserError(f"--hparams: {error}") from None
