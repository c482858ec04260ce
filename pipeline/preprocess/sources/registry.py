"""From the flags to sources: which files, and how each is read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from pipeline import files
from pipeline.flags.data import DataFlags
from pipeline.preprocess.sources import dates, detect, prepared_datasets
from pipeline.preprocess.sources.base import Source
from pipeline.preprocess.sources.delimited import DelimitedSource
from pipeline.preprocess.sources.json_lines import JsonLinesSource
from pipeline.preprocess.sources.parquet import ParquetSource
from pipeline.preprocess.sources.tfrecord import TFRecordSource
from pipeline.types import UserError


def _delimited(path: str, settings: DataFlags, delimiter: str) -> Source:
    delimiter = settings.delimiter or delimiter
    return DelimitedSource(path, delimiter, settings.columns or None)


_OPENERS: Mapping[str, Callable[[str, DataFlags], Source]] = {
    "csv": functools.partial(_delimited, delimiter=","),
    "tsv": functools.partial(_delimited, delimiter="\t"),
    "jsonl": lambda path, settings: JsonLinesSource(path),
    "parquet": lambda path, settings: ParquetSource(path),
    "tfrecord": lambda path, settings: TFRecordSource(path, settings.skip_bad_records),
}


def open_inputs(settings: DataFlags) -> tuple[Source, ...]:
    """Returns the sources that --input stands for, in the order of their paths.

    Raises:
      UserError: A flag is wrong, a part of --input matches nothing, or a file is of
        no format that can be read.
    """
    value = dates.fill("input", settings.input or "", settings.run_date)
    parts = [part.strip() for part in value.split(",")]
    named = [part for part in parts if part.startswith(prepared_datasets.PREFIX)]
    plain = [part for part in parts if part and part not in named]
    formats: dict[str, str | None] = {}
    if plain or not named:
        formats.update(dict.fromkeys(files.expand_patterns("input", ",".join(plain))))
    for part in named:
        name = part.removeprefix(prepared_datasets.PREFIX)
        formats.update(dict.fromkeys(prepared_datasets.record_files(name), "tfrecord"))
    return tuple(
        _open(path, formats[path] or _format_of(path, settings), settings)
        for path in sorted(formats)
    )


def _format_of(path: str, settings: DataFlags) -> str:
    if settings.input_format != "auto":
        return settings.input_format
    if settings.delimiter or settings.columns:
        # The first line of such a file need not tell anything.
        return detect.named_format(path) or "csv"
    return detect.format_of(path)


def _open(path: str, format_: str, settings: DataFlags) -> Source:
    if format_ not in ("csv", "tsv"):
        for flag, given in (
            ("delimiter", settings.delimiter),
            ("columns", settings.columns),
        ):
            if given:
                raise UserError(
                    f"--{flag} is for CSV and TSV files; {path} is read as {format_}"
                )
    return _OPENERS[format_](path, settings)
