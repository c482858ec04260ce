"""Flags: The schema that data is held to."""

from __future__ import annotations

from absl import flags


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "schema",
        None,
        "Schema (TensorFlow Metadata, protobuf text), e.g. an edited copy of"
        " DATASET_DIR/schema.pbtxt: types, presence and allowed values. preprocess"
        " enforces it; check compares a dataset with it.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> str | None:
    return values.schema
