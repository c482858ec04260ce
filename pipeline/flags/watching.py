"""Flags: How a training is watched."""

from __future__ import annotations

import dataclasses

from absl import flags

_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class WatchFlags:
    """Settings of train about watching it, as given.

    Attributes:
      curves: Whether further curves and histograms are written: speed, waiting for
        rows, memory, weights.
      stall_seconds: Seconds without a step after which a line says where it waits; 0
        says nothing.
      profile_steps: First step, and step after the last, of a profile; None makes none.
    """

    curves: bool = True
    stall_seconds: int = 60
    profile_steps: tuple[int, int] | None = None


def _range(given: list[str] | None) -> tuple[int, int] | None:
    if not given:
        return None
    first, end = map(int, given)
    if not 0 < first < end:
        raise ValueError("no range")
    return first, end


def _is_range(given: list[str] | None) -> bool:
    try:
        _range(given)
    except ValueError:
        return False
    return True


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_bool(
        "curves",
        True,
        "Write speed, the share of time that steps wait for rows, and memory every"
        " --summary_steps, and histograms of the weights at each evaluation, for"
        " TensorBoard.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "stall_seconds",
        60,
        "Seconds without a step after which a line says where training waits; 0 says"
        " nothing.",
        lower_bound=0,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_list(
        "profile_steps",
        None,
        "Steps to profile, first and end, e.g. 100,110: a trace for TensorBoard's"
        " profile plugin, and a line on what limits the speed.",
        flag_values=values,
    )
    flags.register_validator(
        "profile_steps",
        _is_range,
        "must be FIRST,END: two steps, 0 < FIRST < END",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> WatchFlags:
    return WatchFlags(
        curves=values.curves,
        stall_seconds=values.stall_seconds,
        profile_steps=_range(values.profile_steps),
    )
