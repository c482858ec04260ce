"""Flags: What holds for every command."""

from __future__ import annotations

from absl import flags


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_bool("help", False, "Show this text.", flag_values=values)
    flags.DEFINE_string(
        "flagfile",
        None,
        "File with one flag a line, e.g. --epochs=5; # begins a comment. Flags after"
        " it on the command line win.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "progress_seconds",
        10.0,
        "Seconds between progress lines in a log; on a terminal a line is redrawn.",
        lower_bound=0.1,
        upper_bound=86400.0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "verbosity",
        0,
        "-1 errors only, 0 progress and summary, 1 also what TensorFlow and Beam say.",
        lower_bound=-1,
        upper_bound=1,
        flag_values=values,
    )
