"""The preprocess stage: raw files into a dataset directory."""

from __future__ import annotations

import collections
import dataclasses
import os
import shutil
import time
from collections.abc import Sequence
from typing import Any

from pipeline import declaration as declarations
from pipeline import environment, files, inputs
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import (
    DATASET_FORMAT,
    DECLARATION_FILE,
    REJECTS_FILE,
    SCHEMA_FILE,
    STATISTICS_FILE,
)
from pipeline.flags.data import DataFlags
from pipeline.manifest import Manifest
from pipeline.preprocess import infer, job
from pipeline.preprocess.sources import registry
from pipeline.preprocess.sources.base import Source
from pipeline.preprocess.summaries import DatasetSummary
from pipeline.types import (
    Declaration,
    ExitCode,
    RecordForm,
    UserError,
    missing_feature,
)

_STAGE = "preprocess"
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """What preprocess will do; everything in it has been checked.

    Attributes:
      sources: The raw files, in the order of their paths.
      declaration: As given, or inferred from the data.
      inferred: Whether it was inferred.
      settings: The flags.
    """

    sources: tuple[Source, ...]
    declaration: Declaration
    inferred: bool
    settings: DataFlags

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(source.path for source in self.sources)


def _check_block_names(declaration: Declaration) -> None:
    for name in declaration.columns:
        if missing_feature(name) in declaration.columns:
            raise UserError(
                f"a block cannot hold both the columns {name} and"
                f" {missing_feature(name)}: rename one or give --record_form=rows"
            )


def plan(settings: DataFlags, schema: str | None = None) -> Plan:
    """Checks the flags against the files, without writing anything.

    Args:
      settings: The flags.
      schema: Path of a schema whose rules take the place of the columns' own.

    Raises:
      UserError: A flag, a file or the declaration is wrong.
    """
    if not settings.input:
        raise UserError("--input is needed: the raw files, e.g. --input='data/*.csv'")
    plan_ = _plan(settings, schema)
    if settings.record_form == RecordForm.BLOCKS.value:
        _check_block_names(plan_.declaration)
    return plan_


def _plan(settings: DataFlags, schema: str | None) -> Plan:
    sources = registry.open_inputs(settings)
    if settings.features is None:
        declaration = infer.infer_declaration(sources, label=settings.label)
        declaration = _with_schema(declaration, schema)
        return Plan(sources, declaration, True, settings)
    if settings.label is not None:
        raise UserError(
            "--label is for an inferred declaration; with --features the label stands"
            f" in {settings.features}"
        )
    features = os.path.expanduser(settings.features.strip())
    if not os.path.isfile(features):
        raise UserError(f"--features: there is no file {features}")
    declaration = _with_schema(declarations.load(features), schema)
    inputs.check_columns(sources, declaration.columns.values(), features)
    return Plan(sources, declaration, False, settings)


def _with_schema(declaration: Declaration, schema: str | None) -> Declaration:
    if schema is None:
        return declaration
    # Protobuf takes a moment to import, and most runs have no schema of their own.
    from pipeline.preprocess import schema as schemas

    return schemas.apply(declaration, os.path.expanduser(schema.strip()))


def check_rejects(results: dict, settings: DataFlags, rejects: str) -> None:
    """Raises UserError if too many rows were rejected."""
    rejected, read = results["rows_rejected"], results["rows_read"]
    if rejected <= settings.max_reject_fraction * read:
        return
    column, count = max(results["rejected_by_column"].items(), key=lambda item: item[1])
    where = f"column {column}" if column else "the row as a whole"
    raise UserError(
        f"{rejected:,} of {read:,} rows were rejected, more than"
        f" --max_reject_fraction={settings.max_reject_fraction:g} allows; most"
        f" ({count:,}) for {where}: {results['first_reason'][column]}. All are in"
        f" {rejects}",
        ExitCode.BAD_DATA,
    )


def _keep_rejects(parts: Sequence[str], path: str) -> None:
    with open(path, "wb") as out:
        for part in parts:
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)


def _declaration_text(plan_: Plan) -> str:
    comment = ""
    if plan_.inferred:
        comment = (
            "Inferred from the data. Edit a copy and pass it as --features=FILE.\n"
            "docs/features.md says what can stand here."
        )
    return declarations.dump(plan_.declaration, comment)


def _missing_values(aside: str) -> dict[str, int]:
    """Returns how many rows of all splits lack a value, by column that has such."""
    summary = DatasetSummary.from_json(
        files.read_json(os.path.join(aside, STATISTICS_FILE))
    )
    missing: collections.Counter[str] = collections.Counter()
    for columns in summary.splits.values():
        for name, column in columns.items():
            missing[name] += column.missing
    return {name: count for name, count in missing.items() if count}


def _run_job(plan_: Plan, directory: str, aside: str, console: Console) -> dict:
    """Fills `aside` with a whole dataset but for its manifest; returns the results."""
    # Beam takes seconds to import; a reused dataset needs none of it.
    environment.load_tensorflow(console.verbosity)
    from pipeline.preprocess import schema, shards

    output = job.run(
        job.JobSettings(
            sources=plan_.sources,
            declaration=plan_.declaration,
            directory=aside,
            shard_bytes=plan_.settings.shard_mb * _MIB,
            record_form=RecordForm(plan_.settings.record_form),
            beam_options=plan_.settings.beam_options,
            stall_seconds=plan_.settings.beam_stall_seconds,
        ),
        console,
    )
    written = shards.finalize(aside, output.shards)
    by_split: dict[str, list[dict]] = {s: [] for s in plan_.declaration.split.names}
    for shard in written:
        by_split[shard.split].append(
            {
                "file": os.path.basename(shard.path),
                "rows": shard.rows,
                "bytes": shard.bytes,
                "sha256": shard.digest,
            }
        )
    results = {
        "rows_read": output.rows_read,
        "rows_written": {
            split: sum(shard["rows"] for shard in entries)
            for split, entries in by_split.items()
        },
        "rows_rejected": sum(output.rejected.values()),
        "rejected_by_column": dict(output.rejected),
        "first_reason": dict(output.first_reason),
        "missing_values": _missing_values(aside),
        "lost": [dataclasses.asdict(loss) for loss in output.losses],
        "declaration_inferred": plan_.inferred,
        "shards": by_split,
    }
    if results["rows_read"] != results["rows_rejected"] + sum(
        results["rows_written"].values()
    ):
        raise RuntimeError(f"rows were lost or counted twice: {results}")
    rejects = os.path.join(aside, REJECTS_FILE)
    _keep_rejects(output.reject_files, rejects)
    try:
        check_rejects(results, plan_.settings, f"{directory}.{REJECTS_FILE}")
        # Too few rows for statistics may be because too many were rejected.
        if output.statistics_failure is not None:
            raise output.statistics_failure
    except UserError:
        os.replace(rejects, f"{directory}.{REJECTS_FILE}")
        raise
    shutil.rmtree(output.parts)
    files.write_atomically(
        os.path.join(aside, DECLARATION_FILE), _declaration_text(plan_)
    )
    files.write_atomically(
        os.path.join(aside, SCHEMA_FILE), schema.to_text(plan_.declaration)
    )
    return results


def digest_inputs(plan_: Plan) -> dict[str, list[dict]]:
    """Returns what is read, as a manifest's `inputs`."""
    return {"files": inputs.digests(plan_.paths)}


def describe_reading(plan_: Plan) -> dict[str, Any]:
    """Returns the settings that decide which rows are read from the inputs."""
    return {
        "declaration": declarations.dump(plan_.declaration),
        "reading": plan_.settings.reading(),
    }


def run(directory: str, plan_: Plan, console: Console) -> Manifest:
    """Writes the dataset, or reuses it where it is of the same files and settings.

    Raises:
      UserError: Too many rows were rejected or the data cannot be read (BAD_DATA), or
        the directory is in use (LOCKED).
    """
    started = time.monotonic()
    sources = digest_inputs(plan_)
    configuration = {
        **describe_reading(plan_),
        "shard_mb": plan_.settings.shard_mb,
        "format": DATASET_FORMAT,
        "record_form": plan_.settings.record_form,
    }
    wanted = manifests.fingerprint(_STAGE, sources, configuration)
    with files.locked(directory):
        finished = manifests.read(directory)
        if finished and finished.fingerprint == wanted:
            check_rejects(
                finished.results, plan_.settings, os.path.join(directory, REJECTS_FILE)
            )
            console.progress(f"preprocess: reused, {directory} is up to date")
            return finished
        console.progress(f"preprocess: {len(plan_.paths)} file(s) into {directory}")
        with files.staged_directory(directory) as aside:
            results = _run_job(plan_, directory, aside, console)
            return manifests.write(
                aside, _STAGE, sources, configuration, results, started
            )
