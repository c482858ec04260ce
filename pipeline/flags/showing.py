"""Flags: How show presents a directory."""

from __future__ import annotations

import dataclasses

from absl import flags

FORMATS = ("text", "html")


@dataclasses.dataclass(frozen=True)
class ShowFlags:
    """Settings of show, as given.

    Attributes:
      format: text, or html for a page about a dataset or a model.
      rows: Print so many rows of a dataset; 0 describes it instead.
      split: Which split they are of.
    """

    format: str
    rows: int
    split: str


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_enum(
        "format",
        "text",
        FORMATS,
        "text, or html: one page about a dataset or a model, with histograms or curves, that needs no"
        " network; written to --output.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "rows",
        0,
        "Print the first so many rows of a split of a dataset.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "split",
        "train",
        ("train", "eval", "test"),
        "Split that --rows prints.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> ShowFlags:
    return ShowFlags(format=values.format, rows=values.rows, split=values.split)
