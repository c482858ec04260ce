"""Flags: How preprocess writes a dataset.

Their values are part of `data.DataFlags`.
"""

from __future__ import annotations

from absl import flags

from pipeline.types import BLOCK_ROWS, RecordForm


def define(values: flags.FlagValues) -> None:
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
