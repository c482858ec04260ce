"""A finished dataset directory, as the later stages read it."""

from __future__ import annotations

import dataclasses
import os

from pipeline import declaration as declarations
from pipeline import manifest as manifests
from pipeline.manifest import Manifest
from pipeline.types import Declaration, ExitCode, RecordForm, UserError

DECLARATION_FILE = "features.yaml"
REJECTS_FILE = "rejects.jsonl"
STATISTICS_FILE = "statistics.json"
SCHEMA_FILE = "schema.pbtxt"


@dataclasses.dataclass(frozen=True)
class Shards:
    """The record files of one split.

    Attributes:
      files: Paths in order.
      rows: Number of rows in all of them.
      form: What a tf.Example in them holds.
    """

    files: tuple[str, ...]
    rows: int
    form: RecordForm = RecordForm.ROWS


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A complete dataset.

    Attributes:
      directory: Where it is.
      declaration: The features as declared when it was made.
      splits: Split name to its records.
      manifest: The record of the preprocess stage.
    """

    directory: str
    declaration: Declaration
    splits: dict[str, Shards]
    manifest: Manifest

    def shards(self, split: str) -> Shards:
        """Returns the records of a split.

        Raises:
          UserError: It has no rows.
        """
        shards = self.splits[split]
        if not shards.rows:
            raise UserError(
                f"{self.directory}: the {split} split has no rows; give more data or"
                f" a larger fraction to {split} in the feature declaration",
                ExitCode.BAD_DATA,
            )
        return shards


def _splits(directory: str, manifest: Manifest) -> dict[str, Shards]:
    splits = {}
    for split, entries in manifest.results["shards"].items():
        for entry in entries:
            path = os.path.join(directory, entry["file"])
            size = os.path.getsize(path) if os.path.exists(path) else None
            if size != entry["bytes"]:
                found = "is missing" if size is None else f"has {size} bytes"
                raise UserError(
                    f"{path} {found}, the manifest says {entry['bytes']}: the dataset"
                    " is damaged; run preprocess again",
                    ExitCode.BAD_DATA,
                )
        splits[split] = Shards(
            tuple(os.path.join(directory, e["file"]) for e in entries),
            sum(e["rows"] for e in entries),
            RecordForm(manifest.configuration["record_form"]),
        )
    return splits


def open_dataset(directory: str) -> Dataset:
    """Opens a dataset that preprocess finished.

    Raises:
      UserError: There is none, it is incomplete, or a record file is damaged.
    """
    if not os.path.isdir(directory):
        raise UserError(
            f"--dataset_dir: {directory} does not exist; run preprocess first"
        )
    manifest = manifests.read(directory)
    if manifest is None or manifest.stage != "preprocess":
        raise UserError(
            f"--dataset_dir: {directory} has no finished dataset (no manifest); run"
            " preprocess"
        )
    return Dataset(
        directory,
        declarations.load(os.path.join(directory, DECLARATION_FILE)),
        _splits(directory, manifest),
        manifest,
    )
