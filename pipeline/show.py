"""The show command: what a directory of this pipeline holds, for people."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import dataset as datasets
from pipeline import files, predict
from pipeline import manifest as manifests
from pipeline.manifest import Manifest
from pipeline.preprocess.summaries import ColumnSummary, DatasetSummary
from pipeline.types import UserError

_REJECTS_SHOWN = 5
_TOP_SHOWN = 3
_TEXT_SHOWN = 40


def _number(value: float) -> str:
    return f"{value:,.6g}"


def _text(value: bytes | str) -> str:
    """Returns text that stays on its line and is not too long for a table."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
    return shown if len(shown) <= _TEXT_SHOWN else shown[: _TEXT_SHOWN - 3] + "..."


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yields rows with their cells in columns: text to the left, numbers right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def _column_row(name: str, column: ColumnSummary) -> tuple[str, ...]:
    missing = f"{column.missing / column.count:.1%}" if column.count else "-"
    numbers = ("", "", "", "")
    if column.numbers is not None:
        n = column.numbers
        numbers = tuple(
            "-" if value is None else _number(value)
            for value in (n.mean, n.variance and n.variance**0.5, n.min, n.max)
        )
    top = ""
    if column.values is not None:
        top = ", ".join(
            f"{_text(value)} ({count:,})"
            for value, count in column.values.top[:_TOP_SHOWN]
        )
    return (_text(name), column.type.value, missing, *numbers, top)


def _dataset(directory: str, manifest: Manifest) -> Iterator[str]:
    results = manifest.results
    yield f"dataset {directory}, finished {manifest.finished}"
    for source in manifest.inputs["files"]:
        yield f"  from {source['path']} ({source['bytes']:,} bytes)"
    yield (
        f"rows read {results['rows_read']:,} = written"
        f" {sum(results['rows_written'].values()):,} + rejected"
        f" {results['rows_rejected']:,}"
    )
    for split, rows in results["rows_written"].items():
        shards = results["shards"][split]
        yield f"  {split}: {rows:,} rows in {len(shards)} shard(s)"
    for loss in results.get("lost", ()):
        yield f"  left out {loss['path']} from record {loss['record']:,} on"
    for column, count in results["rejected_by_column"].items():
        where = f"column {column}" if column else "broken rows"
        yield f"  rejected {count:,} for {where}: {results['first_reason'][column]}"
    summary = DatasetSummary.from_json(
        files.read_json(os.path.join(directory, datasets.STATISTICS_FILE))
    )
    for split, columns in summary.splits.items():
        if split != "train":
            continue
        yield "columns of the train split:"
        header = ("name", "type", "missing", "mean", "std", "min", "max", "top values")
        yield from _table([header, *(_column_row(n, c) for n, c in columns.items())])
    yield from _rejects(os.path.join(directory, datasets.REJECTS_FILE))


def _rejects(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8") as f:
        first = [json.loads(line) for line in itertools.islice(f, _REJECTS_SHOWN)]
    if first:
        yield f"first rejects (all in {path}):"
    for reject in first:
        yield f"  {reject['file']}:{reject['line']}: {reject['reason']}"


def _mapping(values: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    for name, value in values.items():
        shown = _number(value) if isinstance(value, float) else value
        yield f"{indent}{name}: {shown}"


def _model(directory: str, manifest: Manifest) -> Iterator[str]:
    yield f"model {directory}, trained by {manifest.finished}"
    yield from _mapping(manifest.configuration)
    yield f"metrics of the eval split at step {manifest.results['global_step']:,}:"
    yield from _mapping(manifest.results["metrics"])


def _evaluation(directory: str, manifest: Manifest) -> Iterator[str]:
    yield (
        f"evaluation {directory}: {manifest.results['rows']:,} rows of the"
        f" {manifest.configuration['split']} split, finished {manifest.finished}"
    )
    yield from _mapping(manifest.results["metrics"])


def _export(directory: str, manifest: Manifest) -> Iterator[str]:
    results = manifest.results
    verified = results.get("verification")
    yield f"export {directory}, finished {manifest.finished}"
    yield f"  global step: {results['global_step']:,}"
    yield f"  signatures: {', '.join(results['signatures'])}"
    if verified is None:
        yield "  not verified, since it was written while training"
        return
    yield (
        f"  verified on {verified['rows']:,} rows; largest difference"
        f" {verified['largest_difference']:.2g}"
    )


def _predictions(directory: str, manifest: Manifest) -> Iterator[str]:
    results = manifest.results
    yield f"predictions {directory}, finished {manifest.finished}"
    yield f"  of version {manifest.inputs['version']['path']}"
    for source in manifest.inputs["files"]:
        yield f"  from {source['path']} ({source['bytes']:,} bytes)"
    yield (
        f"rows read {results['rows_read']:,} = written {results['rows_written']:,}"
        f" + rejected {results['rows_rejected']:,}"
    )
    yield from _rejects(os.path.join(directory, predict.REJECTS_FILE))


_SHOWS = {
    "preprocess": _dataset,
    "train": _model,
    "evaluate": _evaluation,
    "export": _export,
    predict.STAGE: _predictions,
}


def _describe_stage(directory: str, manifest: Manifest) -> Iterator[str]:
    try:
        yield from _SHOWS[manifest.stage](directory, manifest)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise UserError(
            f"show: a file in {directory} is damaged or missing"
            f" ({type(error).__name__}: {error}); run {manifest.stage} again"
        ) from error


def describe(directory: str) -> Iterator[str]:
    """Yields lines about a dataset, model, evaluation, export or work directory.

    Raises:
      UserError: It is none of these, or a file of it is damaged.
    """
    if not os.path.isdir(directory):
        raise UserError(f"show: there is no directory {directory}")
    own = manifests.read(directory)
    if own is not None and own.stage in _SHOWS:
        yield from _describe_stage(directory, own)
        return
    found = []
    for path in files.find_below(directory, manifests.FILE_NAME, depth=4):
        place = os.path.dirname(path)
        manifest = manifests.read(place)
        if manifest is not None and manifest.stage in _SHOWS:
            found.append((place, manifest))
    if not found:
        raise UserError(
            f"show: {directory} holds nothing that a stage finished (no"
            f" {manifests.FILE_NAME})"
        )
    for place, manifest in sorted(found, key=lambda item: item[0]):
        yield from _describe_stage(place, manifest)
