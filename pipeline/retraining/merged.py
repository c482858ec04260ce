"""A window's days as one dataset, without reading their rows again."""

from __future__ import annotations

import collections
import dataclasses
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import declaration as declarations
from pipeline import files
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import (
    DATASET_FORMAT,
    DECLARATION_FILE,
    REJECTS_FILE,
    SCHEMA_FILE,
    Dataset,
    open_dataset,
)
from pipeline.retraining.days import Day
from pipeline.retraining.window import ROLES
from pipeline.types import Declaration, ExitCode, UserError

_STAGE = "preprocess"
"""To all others it is a dataset as preprocess writes it."""


@dataclasses.dataclass(frozen=True)
class DayOf:
    """A day and the split it is of.

    Attributes:
      day: The day.
      role: Of ROLES.
    """

    day: Day
    role: str


def fingerprint(days: Sequence[DayOf], declaration: Declaration, form: str) -> str:
    """Returns the fingerprint that the merged dataset has or will have."""
    return manifests.fingerprint(
        _STAGE, _inputs(days), _configuration(declaration, form)
    )


def merge(
    directory: str,
    days: Sequence[DayOf],
    declaration: Declaration,
    form: str,
    console: Console,
) -> Dataset:
    """Writes the dataset of a window, or reuses it.

    Records are hard links to those of the days, so they take no room of their own and
    stay when a day is made again.

    Args:
      directory: Where it is written.
      days: The days, rising.
      declaration: Of all of them.
      form: What their records hold, a value of RecordForm.
      console: Where to print.

    Raises:
      UserError: A split has no rows, or the rows allow no constants (BAD_DATA).
    """
    wanted = fingerprint(days, declaration, form)
    finished = manifests.read(directory)
    if finished is None or finished.fingerprint != wanted:
        console.progress(f"window: {len(days)} days into {directory}")
        started = time.monotonic()
        with files.locked(directory), files.staged_directory(directory) as aside:
            results = _write(aside, days, declaration)
            manifests.write(
                aside,
                _STAGE,
                _inputs(days),
                _configuration(declaration, form),
                results,
                started,
            )
    return open_dataset(directory)


def _inputs(days: Sequence[DayOf]) -> dict[str, Any]:
    return {
        "files": [
            {"path": f.path, "bytes": f.bytes, "sha256": f.sha256}
            for one in days
            for f in one.day.files
        ],
        "days": [
            {"date": d.day.date, "split": d.role, "dataset": d.day.fingerprint}
            for d in days
        ],
    }


def _configuration(declaration: Declaration, form: str) -> dict[str, Any]:
    return {
        "declaration": declarations.dump(declaration),
        "format": DATASET_FORMAT,
        "record_form": form,
    }


def _write(
    aside: str, days: Sequence[DayOf], declaration: Declaration
) -> dict[str, Any]:
    """Writes all but the manifest; returns its results."""
    shards: dict[str, list[dict]] = {role: [] for role in ROLES}
    sums: collections.Counter[str] = collections.Counter()
    by_column: collections.Counter[str] = collections.Counter()
    missing: collections.Counter[str] = collections.Counter()
    first_reason: dict[str, str] = {}
    lost: list[dict] = []
    for one in days:
        results = manifests.read(one.day.directory).results
        for entry in results["shards"]["train"]:
            name = f"{one.role}-{one.day.date}-{entry['file'].removeprefix('train-')}"
            files.link_or_copy(
                os.path.join(one.day.directory, entry["file"]),
                os.path.join(aside, name),
            )
            shards[one.role].append({**entry, "file": name})
        sums.update({n: results[n] for n in ("rows_read", "rows_rejected")})
        by_column.update(results["rejected_by_column"])
        missing.update(results["missing_values"])
        first_reason = {**results["first_reason"], **first_reason}
        lost += results["lost"]
    _write_statistics(aside, days, declaration)
    with open(os.path.join(aside, REJECTS_FILE), "wb") as out:
        for one in days:
            with open(os.path.join(one.day.directory, REJECTS_FILE), "rb") as f:
                shutil.copyfileobj(f, out)
    return {
        "rows_read": sums["rows_read"],
        "rows_written": {r: sum(e["rows"] for e in shards[r]) for r in ROLES},
        "rows_rejected": sums["rows_rejected"],
        "rejected_by_column": dict(by_column),
        "first_reason": first_reason,
        "missing_values": dict(missing),
        "lost": lost,
        "declaration_inferred": False,
        "shards": shards,
    }


def _write_statistics(
    aside: str, days: Sequence[DayOf], declaration: Declaration
) -> None:
    # Arrow and protobuf take a moment to import.
    from pipeline.preprocess import (
        constants,
        constants_files,
        merge,
        schema,
        statistics_files,
    )

    roles: Mapping[str, list[str]] = {
        role: [d.day.directory for d in days if d.role == role] for role in ROLES
    }
    for role, directories in roles.items():
        if not directories:
            raise UserError(
                f"the window has no day to {role} on: all of them are missing",
                ExitCode.BAD_DATA,
            )
    statistics = merge.merge_days(roles)
    statistics_files.write(aside, statistics)
    constants_files.write_constants(
        aside,
        constants.compute_constants(
            declaration, statistics["train"], statistics.derived("train")
        ),
    )
    files.write_atomically(
        os.path.join(aside, DECLARATION_FILE), declarations.dump(declaration)
    )
    files.write_atomically(
        os.path.join(aside, SCHEMA_FILE), schema.to_text(declaration)
    )
