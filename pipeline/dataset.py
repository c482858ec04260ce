"""A finished dataset directory, as the later stages read it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import declaration as declarations
from pipeline import files
from pipeline import manifest as manifests
from pipeline.manifest import Manifest
from pipeline.preprocess import constants_files
from pipeline.types import (
    Column,
    Constants,
    Declaration,
    ExitCode,
    Label,
    RecordForm,
    UserError,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Raised when preprocess writes more or other files, so that it does not reuse old ones.
DATASET_FORMAT = 2
DECLARATION_FILE = "features.yaml"
REJECTS_FILE = "rejects.jsonl"
STATISTICS_FILE = "statistics.json"
STATISTICS_PROTO_FILE = "statistics.pb"
ACCUMULATORS_FILE = "accumulators.arrow"
SCHEMA_FILE = "schema.pbtxt"
_STAGE = "preprocess"


@dataclasses.dataclass(frozen=True)
class Shards:
    """The record files of one split.

    Attributes:
      files: Paths in order.
      rows: Number of rows in all of them.
      form: What a tf.Example in them holds.
      file_rows: Rows of each file.
      bytes: Size of all of them.
    """

    files: tuple[str, ...]
    rows: int
    form: RecordForm = RecordForm.ROWS
    file_rows: tuple[int, ...] | None = None
    bytes: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Tables:
    """The rows of one split in memory.

    Attributes:
      files: The raw files they were read from, in order.
      tables: The split's rows of each file: the declared columns as int64, float32 or
        binary; null is a missing value.
    """

    files: tuple[str, ...]
    tables: tuple[pa.Table, ...]

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def bytes(self) -> int:
        return sum(table.nbytes for table in self.tables)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """All that training, evaluation and export need to know of their data.

    It is what preprocess wrote, or raw files that were read into memory without it
    (`pipeline.direct`).

    Attributes:
      directory: Where it is; of raw files, what was given as --input.
      declaration: The features as declared when it was made.
      splits: Split name to its rows.
      manifest: The record of the preprocess stage, or of the reading; its
        fingerprint stands for the rows and the declaration.
      known_constants: The constants, where they do not stand in `directory`.
    """

    directory: str
    declaration: Declaration
    splits: Mapping[str, Shards | Tables]
    manifest: Manifest
    known_constants: Constants | None = None

    def constants(self) -> Constants:
        """Returns the constants of the model's graph.

        Raises:
          UserError: A file of them is missing or damaged.
        """
        if self.known_constants is not None:
            return self.known_constants
        return constants_files.read_constants(self.directory)

    def shards(self, split: str) -> Shards | Tables:
        """Returns the rows of a split.

        Raises:
          UserError: It has no rows.
        """
        shards = self.splits.get(split)
        if shards is None or not shards.rows:
            raise UserError(
                f"{self.directory}: the {split} split has no rows; give more data or"
                f" a larger fraction to {split} in the feature declaration",
                ExitCode.BAD_DATA,
            )
        return shards

    def check_fits(self, model: Declaration, source: str) -> None:
        """Checks that a model can read the records, which may not be its own.

        Args:
          model: The declaration that the model was trained with.
          source: Where it stands, for the message.

        Raises:
          UserError: A column is absent or of another type, may lack values that the
            model needs, or the labels are others.
        """
        columns = {c.name: c for c in model.input_columns}
        for name in (*(one.column for one in model.labels), model.weight):
            if name:
                columns[name] = model.columns[name]
        problems = []
        for column in columns.values():
            problem = _misfit(self.declaration.columns.get(column.name), column)
            if problem:
                problems.append(f"column {column.name} {problem}")
        for label in model.labels:
            problems += _label_misfits(self.declaration.labels, label)
        if problems:
            raise UserError(
                f"{self.directory} does not fit the model in {source}:"
                f" {'; '.join(problems)}"
            )

    def find_damaged(self) -> str | None:
        """Returns the first record file whose content is not what was written."""
        for entries in self.manifest.results["shards"].values():
            for entry in entries:
                path = os.path.join(self.directory, entry["file"])
                try:
                    digest = files.digest_file(path)
                except OSError:
                    return path
                if digest != entry["sha256"]:
                    return path
        return None


def _misfit(found: Column | None, wanted: Column) -> str:
    """Returns why a dataset's column is not as a model wants it, or ""."""
    if found is None:
        return "is absent"
    if found.type is not wanted.type:
        return f"is {found.type.value} instead of {wanted.type.value}"
    if wanted.required and not found.required:
        return "may have missing values, and the model has no default for them"
    return ""


def _label_misfits(labels: Sequence[Label], wanted: Label) -> list[str]:
    if not labels:
        return ["it has no label"]
    by_column = {label.column: label for label in labels}
    if wanted.column not in by_column:
        return [f"its label is {', '.join(by_column)} instead of {wanted.column}"]
    found = by_column[wanted.column]
    if found.separator != wanted.separator:
        return [f"its label {found.column} has another separator"]
    if wanted.classes is None:
        return []
    unknown = [name for name in found.classes or () if name not in wanted.classes]
    if found.classes is None or unknown:
        return [f"its label is not always one of {', '.join(wanted.classes)}"]
    return []


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
            tuple(e["rows"] for e in entries),
            sum(e["bytes"] for e in entries),
        )
    return splits


def _declaration(directory: str, manifest: Manifest) -> Declaration:
    path = os.path.join(directory, DECLARATION_FILE)
    declaration = declarations.load(path)
    if declarations.dump(declaration) != manifest.configuration["declaration"]:
        raise UserError(
            f"{path} was changed after the dataset was made from it: pass a copy to"
            " preprocess as --features"
        )
    return declaration


def open_dataset(directory: str) -> Dataset:
    """Opens a dataset that preprocess finished.

    Raises:
      UserError: There is none, it is incomplete, or a file of it is damaged.
    """
    if not os.path.isdir(directory):
        raise UserError(
            f"--dataset_dir: {directory} does not exist; run preprocess first"
        )
    manifest = manifests.read(directory)
    if manifest is None or manifest.stage != _STAGE:
        raise UserError(
            f"--dataset_dir: {directory} has no finished dataset (no manifest); run"
            " preprocess"
        )
    try:
        splits = _splits(directory, manifest)
        declaration = _declaration(directory, manifest)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{os.path.join(directory, manifests.FILE_NAME)} is damaged"
            f" ({type(error).__name__}: {error}); run preprocess again",
            ExitCode.BAD_DATA,
        ) from error
    return Dataset(directory, declaration, splits, manifest)
