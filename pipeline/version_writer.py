"""Writes a checkpoint as an exported version."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from export import saved_model, transform, versions
from pipeline import best, checkpoints, estimators, files
from pipeline import declaration as declarations
from pipeline import manifest as manifests
from pipeline.compat import estimator
from pipeline.console import Console
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.types import Column, UserError

STAGE = "export"


def sizes(directory: str) -> dict[str, int]:
    """Returns the sizes of all files below, by relative path."""
    return {
        os.path.relpath(os.path.join(place, name), directory): os.path.getsize(
            os.path.join(place, name)
        )
        for place, _, names in sorted(os.walk(directory))
        for name in sorted(names)
    }


def find_newest(export_dir: str) -> tuple[str, Manifest] | None:
    """Returns the version that servers take, if it is whole and ours."""
    newest = versions.versions(export_dir)[-1:]
    if not newest:
        return None
    directory = versions.path(export_dir, newest[0])
    try:
        manifest = manifests.read(directory)
    except UserError:
        return None
    if manifest is None:
        return None
    there = sizes(directory)
    for path, size in manifest.results["files"].items():
        if there.get(path) != size:
            return None
    return directory, manifest


def prune(export_dir: str, keep: int, model_directory: str) -> list[int]:
    """Removes old versions; returns those removed.

    The newest `keep` stay, those that `serve` or `predict` use at the time, and that of
    the model's best checkpoint.
    """
    kept = best.read(model_directory)
    spared: list[int] = []
    if kept is not None:
        wanted = checkpoints.digest(kept.path)
        for version in versions.versions(export_dir):
            with contextlib.suppress(UserError):
                manifest = manifests.read(versions.path(export_dir, version))
                if manifest and manifest.inputs.get("checkpoint") == wanted:
                    spared = [version]
    return versions.prune(export_dir, keep, spared)


def write_saved_model(
    trained: estimator.Estimator,
    checkpoint: str,
    model: TrainedModel,
    directory: str,
    forwarded: Sequence[Column] = (),
    with_embeddings: bool = False,
) -> list[str]:
    """Writes the SavedModel and its declaration; returns the signatures' names.

    Args:
      directory: An empty directory.
      forwarded: Columns that answers repeat.
      with_embeddings: Whether there is a signature for embeddings.
    """
    written = os.path.join(directory, "written")
    signatures = saved_model.write(
        trained,
        checkpoint,
        model.declaration.input_columns,
        written,
        forwarded,
        transform.of(model.declaration, model.constants),
        with_embeddings,
    )
    for name in os.listdir(written):
        os.rename(os.path.join(written, name), os.path.join(directory, name))
    os.rmdir(written)
    os.makedirs(os.path.join(directory, versions.EXTRA))
    files.write_atomically(
        os.path.join(directory, versions.DECLARATION_FILE),
        declarations.dump(model.declaration),
    )
    return signatures


def inputs(model: TrainedModel, checkpoint: str) -> dict[str, Any]:
    """Returns what of a model goes into a version's fingerprint."""
    return {
        "checkpoint": checkpoints.digest(checkpoint),
        "training": model.training.as_json(),
    }


@dataclasses.dataclass(frozen=True)
class VersionWriter:
    """Writes versions while training.

    Unlike those of `export` they are not verified and hold neither requests nor a card.

    Attributes:
      model: The model that is trained.
      keep: Number of newest versions to keep.
      console: Where to print.
    """

    model: TrainedModel
    keep: int
    console: Console

    def __call__(self, export_dir: str, checkpoint: str) -> None:
        """Makes the checkpoint the newest version, unless it is that already."""
        started = time.monotonic()
        source = inputs(self.model, checkpoint)
        with files.locked(os.path.join(export_dir, "versions")):
            versions.sweep(export_dir)
            newest = find_newest(export_dir)
            if not newest or newest[1].inputs["checkpoint"] != source["checkpoint"]:
                self._write(export_dir, checkpoint, source, started)
            prune(export_dir, self.keep, self.model.directory)

    def _write(
        self, export_dir: str, checkpoint: str, source: Mapping, started: float
    ) -> None:
        directory = versions.path(export_dir, versions.next_version(export_dir))
        step = estimators.step_of(checkpoint)
        with files.staged_directory(directory) as aside:
            signatures = write_saved_model(
                estimators.make_estimator(self.model),
                checkpoint,
                self.model,
                aside,
            )
            results = {
                "global_step": step,
                "signatures": signatures,
                "files": sizes(aside),
            }
            manifests.write(aside, STAGE, source, {}, results, started)
        self.console.progress(f"train: step {step:,} exported as {directory}")
