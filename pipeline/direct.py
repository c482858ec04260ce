"""Raw files read into memory as a dataset, for small jobs without preprocess.

What reads, types, rejects, divides and counts the rows is what preprocess uses, without
Beam, so rows, splits and constants are those of the dataset that it would write.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import time
from collections.abc import Mapping

import pyarrow as pa

from pipeline import files
from pipeline import manifest as manifests
from pipeline.console import Console, Progress
from pipeline.dataset import Dataset, Tables
from pipeline.manifest import Manifest
from pipeline.preprocess import constants, rejects, splits, stage, typed
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.sources.base import WHOLE, Loss
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import ExitCode, UserError

STAGE = "direct"
_MIB = 1 << 20


class _Rows:
    """Gathers rows by split and file, and what was wrong with others."""

    def __init__(self, plan: stage.Plan, limit_mb: int):
        self._plan = plan
        self._limit_mb = limit_mb
        self._bytes = 0
        self.statistics = DatasetStatistics.of(plan.declaration)
        self.rows_read = 0
        self.rejects: list[Reject] = []
        self.losses: list[Loss] = []
        self._tables: dict[str, dict[str, list[pa.RecordBatch]]] = {
            split: {} for split in plan.declaration.split.names
        }

    def add(self, raw) -> None:
        declaration = self._plan.declaration
        self.rows_read += raw.rows_read
        if raw.loss is not None:
            self.losses.append(raw.loss)
        batch, rejected = typed.convert(
            raw,
            tuple(declaration.columns.values()),
            declaration.label,
            declaration.split,
        )
        self.rejects += sorted((*raw.rejects, *rejected), key=lambda r: r.line)
        if not batch.table.num_rows:
            return
        self._bytes += batch.table.nbytes
        if self._bytes > self._limit_mb * _MIB:
            raise UserError(
                f"--input: after {self.rows_read:,} rows there are more than"
                f" --direct_mb={self._limit_mb} MiB to be held in memory; run"
                " preprocess, which has no limit and writes a dataset, or raise it"
            )
        for split, table in splits.divide(batch.table, declaration.split).by_split():
            self.statistics.add(split, table)
            self._tables[split].setdefault(raw.path, []).append(table)

    def splits(self) -> Mapping[str, Tables]:
        return {
            split: Tables(
                tuple(by_file),
                tuple(pa.Table.from_batches(batches) for batches in by_file.values()),
            )
            for split, by_file in self._tables.items()
        }


def _results(rows: _Rows) -> dict:
    by_column: collections.Counter[str] = collections.Counter()
    first_reason: dict[str, str] = {}
    for reject in rows.rejects:
        by_column[reject.column or ""] += 1
        first_reason.setdefault(
            reject.column or "", f"{reject.path}, line {reject.line}: {reject.reason}"
        )
    return {
        "rows_read": rows.rows_read,
        "rows_written": {s: t.rows for s, t in rows.splits().items()},
        "rows_rejected": len(rows.rejects),
        "rejected_by_column": dict(by_column),
        "first_reason": first_reason,
        "missing_values": _missing_values(rows.statistics),
        "lost": [dataclasses.asdict(loss) for loss in rows.losses],
        "shards": {},
    }


def _missing_values(statistics: DatasetStatistics) -> dict[str, int]:
    """Returns how many rows lack a value, by column that has such."""
    missing: collections.Counter[str] = collections.Counter()
    for columns in statistics.values():
        missing.update({name: column.missing for name, column in columns.items()})
    return {name: count for name, count in missing.items() if count}


def _report(rows: _Rows, results: dict, rejects_path: str, console: Console) -> None:
    written = ", ".join(f"{s} {n:,}" for s, n in results["rows_written"].items())
    rejected = ""
    if rows.rejects:
        rejected = f"; {len(rows.rejects):,} rows were rejected, see {rejects_path}"
    console.progress(f"input: {rows.rows_read:,} rows read = {written}{rejected}")
    for loss in rows.losses:
        console.progress(
            f"input: left out: {loss.path} from record {loss.record:,} on:"
            f" {loss.reason}"
        )


def read(
    plan: stage.Plan, limit_mb: int, rejects_path: str, console: Console
) -> Dataset:
    """Reads all rows of raw files.

    Args:
      plan: Which files, and the declaration; checked.
      limit_mb: Most MiB of typed rows; for more there is preprocess.
      rejects_path: Gets the rejected rows, as JSON lines, if there are any.
      console: Where to print.

    Raises:
      UserError: There are too many rows or rejects, or a file cannot be read
        (BAD_DATA).
    """
    started = time.monotonic()
    console.progress(f"input: reads {len(plan.paths)} file(s) without a dataset")
    rows = _Rows(plan, limit_mb)
    columns = tuple(plan.declaration.columns.values())
    progress = Progress(console, "input", "rows")
    for source in plan.sources:
        for raw in source.read(WHOLE, [c.name for c in columns], columns):
            rows.add(raw)
            progress.update(rows.rows_read)
    progress.close()
    results = _results(rows)
    if rows.rejects:
        lines = "".join(rejects.to_json(reject) + "\n" for reject in rows.rejects)
        os.makedirs(os.path.dirname(rejects_path), exist_ok=True)
        files.write_atomically(rejects_path, lines)
    stage.check_rejects(results, plan.settings, rejects_path)
    _report(rows, results, rejects_path, console)
    if "train" not in rows.statistics:
        raise UserError(
            "--input: the train split has no rows, so there is nothing to compute"
            " statistics from",
            ExitCode.BAD_DATA,
        )
    computed = constants.compute_constants(plan.declaration, rows.statistics["train"])
    return Dataset(
        directory=f"--input={plan.settings.input}",
        declaration=plan.declaration,
        splits=rows.splits(),
        manifest=_manifest(plan, results, started),
        known_constants=computed,
    )


def _manifest(plan: stage.Plan, results: dict, started: float) -> Manifest:
    """Returns what preprocess would write down of the same files."""
    sources = stage.digest_inputs(plan)
    configuration = stage.describe_reading(plan)
    return Manifest(
        stage=STAGE,
        fingerprint=manifests.fingerprint(STAGE, sources, configuration),
        inputs=sources,
        configuration=configuration,
        results=results,
        versions=manifests.versions(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        seconds=round(time.monotonic() - started, 3),
    )
