"""Flags: The raw data and how it becomes a dataset."""

from __future__ import annotations

import dataclasses
import math

from absl import flags

from pipeline.types import BLOCK_ROWS, RecordForm


@dataclasses.dataclass(frozen=True)
class DataFlags:
    """Settings of preprocess, as given.

    Attributes:
      input: Comma-separated files or patterns.
      features: Path of the feature declaration; None has one inferred.
      label: The column to predict, where a declaration is inferred.
      max_reject_fraction: Share of rows that may be rejected, in [0, 1].
      shard_mb: Size at which a record shard is closed, in MiB.
      beam_options: Further options for Beam's runner, as one line.
      record_form: What a record holds, a value of RecordForm.
      beam_stall_seconds: After so long without progress several workers are stopped.
    """

    input: str | None
    features: str | None
    label: str | None
    max_reject_fraction: float
    shard_mb: int
    beam_options: tuple[str, ...]
    record_form: str = RecordForm.BLOCKS.value
    beam_stall_seconds: float = 600.0


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "input",
        None,
        "Raw data: CSV files (plain, gzip, bz2 or zstd) with a header; a path, a"
        " pattern in quotes, or a comma-separated list.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "features",
        None,
        "Feature declaration (YAML). Without it one is inferred from the data and"
        " written to DATASET_DIR/features.yaml for you to edit.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "label",
        None,
        "Column to predict, where no --features is given.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "max_reject_fraction",
        0.01,
        "Share of rows that may be rejected before preprocess fails, 0 to 1.",
        lower_bound=0.0,
        upper_bound=1.0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "shard_mb",
        64,
        "Size in MiB at which a TFRecord shard is closed and the next begun.",
        lower_bound=1,
        upper_bound=4096,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "record_form",
        RecordForm.BLOCKS.value,
        [form.value for form in RecordForm],
        "What a tf.Example of the dataset holds: one of the rows, or a block of up to"
        f" {BLOCK_ROWS} rows, which is smaller and faster to write and to read.",
        flag_values=values,
    )
    flags.DEFINE_multi_string(
        "beam_option",
        [],
        "An option for Beam's runner, e.g. --beam_option=--direct_num_workers=2; may"
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

    flags.register_validator(
        "max_reject_fraction", math.isfinite, "must be a number", flag_values=values
    )


def read(values: flags.FlagValues) -> DataFlags:
    return DataFlags(
        input=values.input,
        features=values.features,
        label=values.label,
        max_reject_fraction=values.max_reject_fraction,
        shard_mb=values.shard_mb,
        beam_options=tuple(values.beam_option),
        record_form=values.record_form,
        beam_stall_seconds=values.beam_stall_seconds,
    )
