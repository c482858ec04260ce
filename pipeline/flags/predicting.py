"""Flags: What predict writes."""

from __future__ import annotations

import dataclasses

from absl import flags

SIGNATURE = "serving_default"
FORMATS = ("jsonl", "csv", "parquet", "tfrecord")


@dataclasses.dataclass(frozen=True)
class PredictFlags:
    """Settings of predict beside --output, as given.

    Attributes:
      output_dir: Directory for files of predictions and a manifest, in place of a file.
      output_format: In `FORMATS`; None lets it follow from the name of the file.
      rows_per_file: Rows at which a file of the directory is closed.
      key_columns: Columns of the raw files that stand beside each prediction.
      signature: The version's signature that answers.
    """

    output_dir: str | None = None
    output_format: str | None = None
    rows_per_file: int = 1_000_000
    key_columns: tuple[str, ...] = ()
    signature: str = SIGNATURE


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "output_dir",
        None,
        "In place of --output: a directory for files of predictions, rejects and a"
        " manifest, which is there when all is.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "output_format",
        None,
        FORMATS,
        "Format of predictions. By default that of --output's name (.csv, .parquet,"
        " .tfrecord), else jsonl.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "rows_per_file",
        1_000_000,
        "Rows at which a file of --output_dir is closed and the next begun.",
        lower_bound=1,
        upper_bound=2**31 - 1,
        flag_values=values,
    )
    flags.DEFINE_list(
        "key_columns",
        [],
        "Columns of the raw files that stand beside each prediction as they are,"
        " separated by commas, e.g. a customer number; the model need not know them.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "signature",
        SIGNATURE,
        "Signature that answers; embeddings and transform take the same rows.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> PredictFlags:
    names = (name.strip() for name in values.key_columns)
    return PredictFlags(
        output_dir=values.output_dir,
        output_format=values.output_format,
        rows_per_file=values.rows_per_file,
        key_columns=tuple(dict.fromkeys(filter(None, names))),
        signature=values.signature,
    )
