"""Manifests: what a stage read, how it was set, what it made.

A manifest is the last file that a stage writes, so it also marks the stage's
directory as complete. A stage is reused when the fingerprint of what it would do
now equals the one in the manifest.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from typing import Any

import pipeline
from pipeline import files
from pipeline.types import UserError

FILE_NAME = "manifest.json"
_PACKAGES = (
    "tensorflow",
    "tf-keras",
    "tensorflow-estimator",
    "apache-beam",
    "pyarrow",
    "numpy",
)
_MAPPINGS = ("inputs", "configuration", "results", "versions")


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The record of a finished stage.

    Attributes:
      stage: Name of the stage.
      fingerprint: Digest of `inputs`, `configuration` and the pipeline's version.
      inputs: What was read, with digests.
      configuration: Every setting that has an effect on the result.
      results: What was made: counts, metrics, paths.
      versions: Of Python, packages and, where known, the source revision.
      finished: Local time, ISO 8601.
      seconds: Wall time of the stage.
    """

    stage: str
    fingerprint: str
    inputs: Mapping[str, Any]
    configuration: Mapping[str, Any]
    results: Mapping[str, Any]
    versions: Mapping[str, str | None]
    finished: str
    seconds: float


def fingerprint(
    stage: str, inputs: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    """Returns the digest that decides whether finished work can be reused."""
    return files.digest_value(
        [stage, pipeline.__version__, dict(inputs), dict(configuration)]
    )


def _source_revision() -> str | None:
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def versions() -> dict[str, str | None]:
    """Returns the versions of everything that may change a result."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    found["pipeline"] = pipeline.__version__
    found["revision"] = _source_revision()
    return found


def write(
    directory: str,
    stage: str,
    inputs: Mapping[str, Any],
    configuration: Mapping[str, Any],
    results: Mapping[str, Any],
    started: float,
) -> Manifest:
    """Writes the manifest of a stage; call it after everything else is written.

    Args:
      started: `time.monotonic()` when the stage began.
    """
    manifest = Manifest(
        stage=stage,
        fingerprint=fingerprint(stage, inputs, configuration),
        inputs=dict(inputs),
        configuration=dict(configuration),
        results=dict(results),
        versions=versions(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        seconds=round(time.monotonic() - started, 3),
    )
    files.write_json(os.path.join(directory, FILE_NAME), dataclasses.asdict(manifest))
    return manifest


def read(directory: str) -> Manifest | None:
    """Returns the manifest of a directory, or None where no stage finished.

    Raises:
      UserError: There is a manifest, but it is not one of this pipeline.
    """
    path = os.path.join(directory, FILE_NAME)
    if not os.path.exists(path):
        return None
    values = files.read_fields(path, Manifest, "a manifest of this pipeline")
    for name in _MAPPINGS:
        if not isinstance(values[name], dict):
            raise UserError(
                f"{path} is not a manifest of this pipeline: {name} is no mapping"
            )
    return Manifest(**values)


def check_replaceable(flag: str, directory: str, stage: str) -> None:
    """Checks that a stage may put its result in the place of a directory.

    Raises:
      UserError: There are files which the stage did not write.
    """
    if not os.path.lexists(directory):
        return
    if not os.path.isdir(directory):
        raise UserError(f"--{flag}: {directory} is not a directory")
    finished = read(directory)
    if os.listdir(directory) and (finished is None or finished.stage != stage):
        raise UserError(
            f"--{flag}: {directory} holds files that {stage} did not write and would"
            " remove; choose another directory"
        )
