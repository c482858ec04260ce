"""Flags: Who preprocesses and predicts.

Their values are part of `data.DataFlags`.
"""

from __future__ import annotations

from absl import flags


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "direct_num_workers",
        1,
        "Processes that preprocess or predict on this machine; more than one pays for jobs that"
        " take a minute or longer.",
        lower_bound=1,
        upper_bound=1024,
        flag_values=values,
    )
    flags.DEFINE_multi_string(
        "beam_option",
        [],
        "An option for Beam's runner, e.g. --beam_option=--runner=PrismRunner; may"
        " be given several times.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "beam_stall_seconds",
        600.0,
        "With several Beam workers on this machine: a run that makes no progress for"
        " so long is stopped and fails.",
        lower_bound=1.0,
        flag_values=values,
    )
