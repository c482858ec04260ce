"""The export stage: a trained model into a verified SavedModel version."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time

from export import saved_model, verify, versions
from pipeline import declaration as declarations
from pipeline import estimators, files
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.flags.serving import ServingFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel

_STAGE = "export"


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """What export did.

    Attributes:
      directory: The version's directory.
      manifest: The version's manifest; its results hold the verification.
    """

    directory: str
    manifest: Manifest


def _find_finished(export_dir: str, fingerprint: str) -> ExportResult | None:
    for version in reversed(versions.versions(export_dir)):
        directory = versions.path(export_dir, version)
        manifest = manifests.read(directory)
        if manifest and manifest.fingerprint == fingerprint:
            return ExportResult(directory, manifest)
    return None


def run(
    export_dir: str,
    model: TrainedModel,
    dataset: Dataset,
    settings: ServingFlags,
    console: Console,
) -> ExportResult:
    """Exports the newest checkpoint as the next version, once it is verified.

    The version is written and verified under a hidden name and then renamed, so a
    server that watches `export_dir` sees whole, verified versions only.

    Raises:
      UserError: The export disagrees with the Estimator (VERIFY_FAILED) or the
        directory is in use (LOCKED).
    """
    started = time.monotonic()
    shards = dataset.shards(settings.eval_split)
    checkpoint, step = estimators.latest_checkpoint(model)
    inputs = {
        "checkpoint": estimators.digest_checkpoint(checkpoint),
        "training": model.training.as_json(),
        "dataset": dataset.manifest.fingerprint,
    }
    configuration = {
        "split": settings.eval_split,
        "verify_rows": settings.verify_rows,
    }
    wanted = manifests.fingerprint(_STAGE, inputs, configuration)
    with files.locked(export_dir):
        finished = _find_finished(export_dir, wanted)
        if finished:
            console.progress(f"export: reused, {finished.directory} is up to date")
            return finished
        console.progress(f"export: step {step:,} of {model.directory}")
        trained = estimators.make_estimator(model)
        _sweep(export_dir)
        version = versions.next_version(export_dir)
        directory = versions.path(export_dir, version)
        with files.staged_directory(directory) as aside:
            written = os.path.join(aside, "written")
            signatures = saved_model.write(
                trained, checkpoint, model.declaration.input_columns, written
            )
            for name in os.listdir(written):
                os.rename(os.path.join(written, name), os.path.join(aside, name))
            os.rmdir(written)
            os.makedirs(os.path.join(aside, versions.EXTRA))
            files.write_atomically(
                os.path.join(aside, versions.DECLARATION_FILE),
                declarations.dump(model.declaration),
            )
            console.progress("verify: loading the export in a fresh process")
            verified = verify.verify(
                aside,
                trained,
                checkpoint,
                estimators.to_records(shards),
                model.declaration,
                settings.verify_rows,
            )
            results = {
                "global_step": step,
                "signatures": signatures,
                "verification": dataclasses.asdict(verified),
            }
            manifest = manifests.write(
                aside, _STAGE, inputs, configuration, results, started
            )
        for old in versions.prune(export_dir, settings.keep_versions):
            console.progress(f"export: removed old version {old}")
    return ExportResult(directory, manifest)


def _sweep(export_dir: str) -> None:
    """Removes what killed exports left; versions have names without a dot."""
    if not os.path.isdir(export_dir):
        return
    for name in os.listdir(export_dir):
        if name.startswith(".") and (".tmp-" in name or ".old-" in name):
            shutil.rmtree(os.path.join(export_dir, name), ignore_errors=True)
