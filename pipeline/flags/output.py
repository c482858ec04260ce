"""Flags: The file that a command writes."""

from __future__ import annotations

from absl import flags


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "output",
        None,
        "File to write. predict: a prediction a row (see --output_format); check: the report, .json or"
        " .pbtxt (TensorFlow Metadata Anomalies); show --format=html: the page"
        " (default DIRECTORY.html).",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> str | None:
    return values.output
