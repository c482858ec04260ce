"""The export stage: a trained model into a verified SavedModel version."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from export import verify, versions
from export.formats import writer as formats
from model_fns import registry
from pipeline import damage, estimators, files, version_extras, version_writer
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.estimators import PinnedCheckpoint
from pipeline.flags.exporting import ExportFlags
from pipeline.flags.serving import ServingFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.types import Column, UserError

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
    pinned: PinnedCheckpoint,
    dataset: Dataset,
    settings: ServingFlags,
    directory: str,
    console: Console,
    exporting: ExportFlags,
    evaluation_dir: str | None,
) -> dict[str, Any]:
    """Writes all of a version but its manifest; returns the results so far."""
    model, checkpoint = pinned.model, pinned.path
    trained = estimators.make_estimator(model)
    part = estimators.to_records(dataset.shards(settings.eval_split))
    forwarded = _forwarded(exporting.forward_features, model)
    with damage.explained(dataset, checkpoint):
        signatures = version_writer.write_saved_model(
            trained,
            checkpoint,
            model,
            directory,
            forwarded,
            exporting.embeddings,
        )
        version_extras.write(
            directory,
            pinned,
            dataset,
            settings.eval_split,
            evaluation_dir,
            forwarded,
        )
        console.progress("verify: loading the export in a fresh process")
        verified = verify.verify(
            directory,
            trained,
            checkpoint,
            part,
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
                part,
                model.declaration,
                settings.verify_rows,
            )
    return {
        "signatures": signatures,
        "verification": dataclasses.asdict(verified),
        "formats": written_formats,
        "files": version_writer.sizes(directory),
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
    """Exports a checkpoint as the next version, once it is verified.

    The version is written and verified under a hidden name and then renamed, so a
    server that watches `export_dir` sees whole, verified versions only. Training may
    go on meanwhile.

    Args:
      exporting: What the version holds beside the model.
      evaluation_dir: Where evaluate wrote metrics, for the model card.

    Raises:
      UserError: The export disagrees with the Estimator (VERIFY_FAILED), the model
        does not fit the dataset, a file is damaged (BAD_DATA), or the directory is in
        use (LOCKED).
    """
    dataset.check_fits(model.declaration, model.directory)
    dataset.shards(settings.eval_split)
    _forwarded(exporting.forward_features, model)
    registry.check_export(
        registry.find(model.training.model), exporting.formats, exporting.embeddings
    )
    formats.check(exporting.formats, model.declaration)
    with estimators.pinned_checkpoint(model, settings.checkpoint) as pinned:
        return _export(
            export_dir, pinned, dataset, settings, console, exporting, evaluation_dir
        )


def _export(
    export_dir: str,
    pinned: PinnedCheckpoint,
    dataset: Dataset,
    settings: ServingFlags,
    console: Console,
    exporting: ExportFlags,
    evaluation_dir: str | None,
) -> ExportResult:
    started = time.monotonic()
    model, checkpoint = pinned.model, pinned.path
    inputs = {
        **version_writer.inputs(model, checkpoint),
        "dataset": dataset.manifest.fingerprint,
    }
    configuration = {
        "split": settings.eval_split,
        "verify_rows": settings.verify_rows,
        "forward_features": list(exporting.forward_features),
        "formats": list(exporting.formats),
        "embeddings": exporting.embeddings,
    }
    wanted = manifests.fingerprint(version_writer.STAGE, inputs, configuration)
    # The lock lies inside, for what is above an export directory may be read-only.
    with files.locked(os.path.join(export_dir, "versions")):
        versions.sweep(export_dir)
        newest = version_writer.find_newest(export_dir)
        if newest and newest[1].fingerprint == wanted:
            result = ExportResult(*newest)
            console.progress(f"export: reused, {result.directory} is up to date")
        else:
            console.progress(f"export: step {pinned.step:,} of {model.directory}")
            directory = versions.path(export_dir, versions.next_version(export_dir))
            with files.staged_directory(directory) as aside:
                results = _write_version(
                    pinned, dataset, settings, aside, console, exporting, evaluation_dir
                )
                manifest = manifests.write(
                    aside,
                    version_writer.STAGE,
                    inputs,
                    configuration,
                    {"global_step": pinned.step, **results},
                    started,
                )
            result = ExportResult(directory, manifest)
        for old in version_writer.prune(
            export_dir, settings.keep_versions, model.directory
        ):
            console.progress(f"export: removed old version {old}")
    return result
