"""Flags: The raw data and what its columns mean."""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any

from absl import flags

from pipeline.types import RecordForm


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
      input_format: Format of the files, or "auto".
      delimiter: What separates fields, where it is neither comma nor tab; one
        character.
      columns: Column names of delimited files that have no line with them.
      run_date: YYYY-MM-DD, for {date} in `input`.
      skip_bad_records: Whether the rest of a damaged TFRecord file is left out.
      record_form: What a record holds, a value of RecordForm.
      beam_stall_seconds: After so long without progress several workers are stopped.
    """

    input: str | None
    features: str | None
    label: str | None
    max_reject_fraction: float
    shard_mb: int
    beam_options: tuple[str, ...]
    input_format: str = "auto"
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    run_date: str | None = None
    skip_bad_records: bool = False
    record_form: str = RecordForm.BLOCKS.value
    beam_stall_seconds: float = 600.0

    def reading(self) -> dict[str, Any]:
        """Returns the settings that decide which rows files give."""
        return {
            "input_format": self.input_format,
            "delimiter": self.delimiter,
            "columns": list(self.columns),
            "skip_bad_records": self.skip_bad_records,
        }


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "input",
        None,
        "Raw data: CSV, TSV or JSON lines (plain, gzip, bz2 or zstd), Parquet or"
        " TFRecord files: a path, a pattern in quotes, or a comma-separated list."
        " {date} or e.g. {date:%Y%m%d} in it stands for --run_date. tfds:NAME or"
        " tfds:DIR is a prepared TensorFlow Dataset.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "input_format",
        "auto",
        ["auto", "csv", "tsv", "jsonl", "parquet", "tfrecord"],
        "Format of the raw files; auto tells it for each file by its content and name.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "delimiter",
        None,
        "The character between the fields of a CSV file that has no commas, e.g."
        " --delimiter=';'; \\t is a tab.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "columns",
        [],
        "Names of all columns, in order, of CSV or TSV files whose first line is a"
        " row, e.g. --columns=age,income.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "run_date",
        None,
        "Date that {date} in --input stands for, as YYYY-MM-DD.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "skip_bad_records",
        False,
        "Use a damaged TFRecord file up to its first damaged record, and report what"
        " was left out; without it, damage is an error.",
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

    flags.register_validator(
        "max_reject_fraction", math.isfinite, "must be a number", flag_values=values
    )
    flags.register_validator(
        "delimiter",
        lambda text: text is None or _is_delimiter(_delimiter(text)),
        "must be one ASCII character, neither a quote nor a line end",
        flag_values=values,
    )
    flags.register_validator(
        "columns",
        lambda names: all(names) and len(set(names)) == len(names),
        "must be different names, none of them empty",
        flag_values=values,
    )
    flags.register_validator(
        "run_date",
        lambda text: text is None or _is_date(text),
        "must be a date as YYYY-MM-DD",
        flag_values=values,
    )


def _delimiter(text: str) -> str:
    return "\t" if text == "\\t" else text


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in '"\r\n'


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _local_workers(count: int) -> tuple[str, ...]:
    """Returns Beam's options for several processes on this machine."""
    if count == 1:
        return ()
    return (
        "--direct_running_mode=multi_processing",
        f"--direct_num_workers={count}",
    )


def read(values: flags.FlagValues) -> DataFlags:
    return DataFlags(
        input=values.input,
        features=values.features,
        label=values.label,
        max_reject_fraction=values.max_reject_fraction,
        shard_mb=values.shard_mb,
        beam_options=(
            *_local_workers(values.direct_num_workers),
            *values.beam_option,
        ),
        input_format=values.input_format,
        delimiter=values.delimiter and _delimiter(values.delimiter),
        columns=tuple(name.strip() for name in values.columns),
        run_date=values.run_date,
        skip_bad_records=values.skip_bad_records,
        record_form=values.record_form,
        beam_stall_seconds=values.beam_stall_seconds,
    )
