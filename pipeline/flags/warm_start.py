"""Flags: Beginning from the weights of another model."""

from __future__ import annotations

import dataclasses
import re

from absl import flags


@dataclasses.dataclass(frozen=True)
class WarmStartFlags:
    """Settings of train about warm start, as given.

    Attributes:
      source: A model directory or a checkpoint's path prefix; None means no warm start.
      variables: Regular expression that must be found in a variable's name; None means
        the weights and moving statistics, without the state of optimizers.
      renamed: Beginnings of variable names: the source's to ours.
    """

    source: str | None = None
    variables: str | None = None
    renamed: tuple[tuple[str, str], ...] = ()


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "warm_start_from",
        None,
        "Model directory, or checkpoint (DIR/model.ckpt-STEP), whose weights a new"
        " model begins with. Its steps begin at 0. A model that has a checkpoint of"
        " its own goes on from that.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "warm_start_vars",
        None,
        "Regular expression: only variables in whose names it is found are taken over."
        " By default weights and moving statistics, without the state of optimizers.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "warm_start_map",
        [],
        "OLD=NEW,...: variables whose names begin with NEW are taken from those that"
        " begin with OLD there.",
        flag_values=values,
    )
    flags.register_validator(
        "warm_start_vars",
        lambda text: text is None or _compiles(text),
        "must be a regular expression",
        flag_values=values,
    )
    flags.register_validator(
        "warm_start_map",
        lambda pairs: all(len([*filter(None, p.split("="))]) == 2 for p in pairs),
        "must be of the form OLD=NEW,OLD=NEW",
        flag_values=values,
    )


def _compiles(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def read(values: flags.FlagValues) -> WarmStartFlags:
    pairs = (pair.partition("=") for pair in values.warm_start_map)
    return WarmStartFlags(
        source=(values.warm_start_from or "").strip() or None,
        variables=values.warm_start_vars or None,
        renamed=tuple((old.strip(), new.strip()) for old, _, new in pairs),
    )
