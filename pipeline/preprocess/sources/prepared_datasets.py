"""TensorFlow Datasets that are prepared on this machine, as files of records.

Nothing is downloaded and no code of a dataset runs: only what stands in its directory
is used.
"""

from __future__ import annotations

import os
import re

from pipeline import files
from pipeline.types import UserError

PREFIX = "tfds:"
_INFO = "dataset_info.json"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_HOW_TO = (
    "nothing is downloaded here: prepare it first, e.g. with tfds build, or give the"
    " directory that holds dataset_info.json as tfds:DIR"
)


def record_files(name: str) -> tuple[str, ...]:
    """Returns the TFRecord files of all splits of a prepared dataset.

    Args:
      name: What stands behind `tfds:`: a name (NAME, NAME/CONFIG, each with an
        optional :VERSION), looked up in TFDS_DATA_DIR or ~/tensorflow_datasets, or a
        directory.

    Raises:
      UserError: There is no such dataset, there are several, or its files are missing
        or of another format.
    """
    directory = _find(name)
    import tensorflow_datasets as tfds

    try:
        info = tfds.builder_from_directory(directory).info
        stored_as = info.file_format.value
        paths = [str(p) for split in info.splits.values() for p in split.filepaths]
    except Exception as error:
        raise UserError(
            f"--input: {PREFIX}{name}: {directory} holds no dataset that can be read:"
            f" {error}"
        ) from error
    if stored_as != "tfrecord":
        raise UserError(
            f"--input: {PREFIX}{name} is stored as {stored_as}; only tfrecord can be"
            " read: prepare it with file_format=tfrecord"
        )
    absent = [path for path in paths if not os.path.isfile(path)]
    if absent or not paths:
        raise UserError(
            f"--input: {PREFIX}{name} is not prepared in full:"
            f" {absent[0] if absent else 'it has no files'} is missing; {_HOW_TO}"
        )
    return tuple(paths)


def _find(name: str) -> str:
    """Returns the directory of the wanted configuration and version."""
    given = os.path.expanduser(name.strip())
    if os.path.isfile(os.path.join(given, _INFO)):
        return given
    wanted, _, version = given.partition(":")
    default = os.path.expanduser(os.path.join("~", "tensorflow_datasets"))
    data_dir = os.environ.get("TFDS_DATA_DIR") or default
    root = given if os.path.isdir(given) else os.path.join(data_dir, wanted)
    found = []
    if os.path.isdir(root):
        found = [os.path.dirname(p) for p in files.find_below(root, _INFO, 2)]
    if version and not os.path.isdir(given):
        found = [path for path in found if os.path.basename(path) == version]
    if not found:
        raise UserError(f"--input: {PREFIX}{name} is not prepared in {root}; {_HOW_TO}")
    parents = sorted({os.path.dirname(path) for path in found})
    if len(parents) > 1:
        names = ", ".join(os.path.basename(parent) for parent in parents)
        raise UserError(
            f"--input: {PREFIX}{name} has several configurations: {names}; choose one,"
            f" e.g. {PREFIX}{wanted}/{os.path.basename(parents[0])}"
        )
    return max(found, key=_version_order)


def _version_order(path: str) -> tuple[int, ...]:
    name = os.path.basename(path)
    return tuple(map(int, name.split("."))) if _VERSION.fullmatch(name) else ()
