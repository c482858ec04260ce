"""Definitions of flags that are numbers."""

from __future__ import annotations

import math

from absl import flags

_MAX_COUNT = 2**31 - 1


def count(values, name: str, default, text: str, lower: int = 1) -> None:
    flags.DEFINE_integer(
        name,
        default,
        text,
        lower_bound=lower,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )


def number(values, name: str, default: float, text: str, **bounds) -> None:
    flags.DEFINE_float(name, default, text, flag_values=values, **bounds)
    flags.register_validator(
        name, math.isfinite, "must be a number", flag_values=values
    )
