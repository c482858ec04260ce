"""The export stage: a trained model into a verified SavedModel version."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from export import saved_model, transform, verify, versions
from export.formats import writer as formats
from pipeline import damage, estimators, files, version_extras
from pipeline import declaration as declarations
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.flags.exporting import ExportFlags
from pipeline.flags.serving import ServingFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.types import Column, UserError

_STAGE = "export"
DEFAULTS = ExportFlags()
"""Nothing beside the model."""


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """What export did.

    Attributes:
      directory: The version's directory.
      manifest: The version's manifest; its results hold the verification.
    """

    directory: str
    manifest: Manifest


def _sizes(directory: str) -> dict[str, int]:
    """Returns the sizes of all files below, by relative path."""
    return {
        os.path.relpath(os.path.join(place, name), directory): os.path.getsize(
            os.path.join(place, name)
        )
        for place, _, names in sorted(os.walk(directory))
        for name in sorted(names)
    }


def _find_finished(export_dir: str, fingerprint: str) -> ExportResult | None:
    """Returns the version that servers take, if it is whole and the wanted one."""
    newest = versions.versions(export_dir)[-1:]
    if not newest:
        return None
    directory = versions.path(export_dir, newest[0])
    try:
        manifest = manifests.read(directory)
    except UserError:
        return None
    if manifest is None or manifest.fingerprint != fingerprint:
        return None
    there = _sizes(directory)
    for path, size in manifest.results["files"].items():
        if there.get(path) != size:
            return None
    return ExportResult(directory, manifest)


def _forwarded(names: Sequence[str], model: TrainedModel) -> tuple[Column, ...]:
    """Returns the columns that answers repeat."""
    columns = model.declaration.columns
    for name in names:
        if name not in columns:
            raise UserError(
                f"--forward_features: the model in {model.directory} declares no column"
                f" {name}; there are {', '.join(columns)}"
            )
    return tuple(columns[name] for name in names)


def _write_version(
    model: TrainedModel,
    dataset: Dataset,
    checkpoint: str,
    settings: ServingFlags,
    directory: str,
    console: Console,
    exporting: ExportFlags,
    evaluation_dir: str | None,
) -> dict[str, Any]:
    """Writes all of a version but its manifest; returns the results so far."""
    trained = estimators.make_estimator(model)
    forwarded = _forwarded(exporting.forward_features, model)
    with damage.explained(dataset, checkpoint):
        written = os.path.join(directory, "written")
        signatures = saved_model.write(
            trained,
            checkpoint,
            model.declaration.input_columns,
            written,
            forwarded,
            transform.of(model.declaration, model.constants),
        )
        for name in os.listdir(written):
            os.rename(os.path.join(written, name), os.path.join(directory, name))
        os.rmdir(written)
        os.makedirs(os.path.join(directory, versions.EXTRA))
        files.write_atomically(
            os.path.join(directory, versions.DECLARATION_FILE),
            declarations.dump(model.declaration),
        )
        version_extras.write(
            directory,
            model,
            dataset,
            checkpoint,
            settings.eval_split,
            evaluation_dir,
            forwarded,
        )
        console.progress("verify: loading the export in a fresh process")
        verified = verify.verify(
            directory,
            trained,
            checkpoint,
            estimators.to_records(dataset.shards(settings.eval_split)),
            model.declaration,
            settings.verify_rows,
            forwarded,
        )
        written_formats = {}
        if exporting.formats:
            console.progress(f"export: formats {', '.join(exporting.formats)}")
            written_formats = formats.write(
                exporting.formats,
                directory,
                os.path.join(directory, versions.EXTRA),
                trained,
                checkpoint,
                estimators.to_records(dataset.shards(settings.eval_split)),
                model.declaration,
                settings.verify_rows,
            )
    return {
        "signatures": signatures,
        "verification": dataclasses.asdict(verified),
        "formats": written_formats,
        "files": _sizes(directory),
    }


def run(
    export_dir: str,
    model: TrainedModel,
    dataset: Dataset,
    settings: ServingFlags,
    console: Console,
    exporting: ExportFlags = DEFAULTS,
    evaluation_dir: str | None = None,
) -> ExportResult:
    """Exports the newest checkpoint as the next version, once it is verified.

    The version is written and verified under a hidden name and then renamed, so a
    server that watches `export_dir` sees whole, verified versions only.

    Args:
      exporting: What the version holds beside the model.
      evaluation_dir: Where evaluate wrote metrics, for the model card.

    Raises:
      UserError: The export disagrees with the Estimator (VERIFY_FAILED), the model
        does not fit the dataset, a file is damaged (BAD_DATA), or the directory is in
        use (LOCKED).
    """
    started = time.monotonic()
    dataset.check_fits(model.declaration, model.directory)
    dataset.shards(settings.eval_split)
    _forwarded(exporting.forward_features, model)
    formats.check_installed(exporting.formats)
    checkpoint, step = estimators.latest_checkpoint(model)
    inputs = {
        "checkpoint": estimators.digest_checkpoint(checkpoint),
        "training": model.training.as_json(),
        "dataset": dataset.manifest.fingerprint,
    }
    configuration = {
        "split": settings.eval_split,
        "verify_rows": settings.verify_rows,
        "forward_features": list(exporting.forward_features),
        "formats": list(exporting.formats),
    }
    wanted = manifests.fingerprint(_STAGE, inputs, configuration)
    # The lock lies inside, for what is above an export directory may be read-only.
    with files.locked(os.path.join(export_dir, "versions")):
        versions.sweep(export_dir)
        result = _find_finished(export_dir, wanted)
        if result:
            console.progress(f"export: reused, {result.directory} is up to date")
        else:
            console.progress(f"export: step {step:,} of {model.directory}")
            directory = versions.path(export_dir, versions.next_version(export_dir))
            with files.staged_directory(directory) as aside:
                results = _write_version(
                    model,
                    dataset,
                    checkpoint,
                    settings,
                    aside,
                    console,
                    exporting,
                    evaluation_dir,
                )
                manifest = manifests.write(
                    aside,
                    _STAGE,
                    inputs,
                    configuration,
                    {"global_step": step, **results},
                    started,
                )
            result = ExportResult(directory, manifest)
        for old in versions.prune(export_dir, settings.keep_versions):
            console.progress(f"export: removed old version {old}")
    return result
