"""A copy of a dataset's files on this machine, for datasets that are far away."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil

from pipeline import files
from pipeline.console import Console
from pipeline.dataset import Dataset, Shards
from pipeline.types import ExitCode, UserError


def copied(dataset: Dataset, directory: str, console: Console) -> Dataset:
    """Returns the dataset with its records in a directory, copied where need be.

    Args:
      dataset: A dataset of record files.
      directory: Where copies are kept, those of each dataset in a directory of its own.
      console: Where to print.

    Raises:
      UserError: A file is damaged (BAD_DATA), or another process copies (LOCKED).
    """
    place = os.path.join(directory, dataset.manifest.fingerprint[:16])
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise UserError(f"--cache: {directory} is not a directory")
    os.makedirs(directory, exist_ok=True)
    with files.locked(place):
        os.makedirs(place, exist_ok=True)
        new = 0
        for entries in dataset.manifest.results["shards"].values():
            new += sum(_copy(dataset, entry, place) for entry in entries)
    console.progress(f"input: reads copies in {place}, {new} of them new")
    return dataclasses.replace(
        dataset,
        directory=place,
        splits={s: _moved(shards, place) for s, shards in dataset.splits.items()},
        known_constants=dataset.constants(),
    )


def _moved(shards: Shards, place: str) -> Shards:
    moved = tuple(os.path.join(place, os.path.basename(path)) for path in shards.files)
    return dataclasses.replace(shards, files=moved)


def _copy(dataset: Dataset, entry: dict, place: str) -> bool:
    """Copies a file unless there is a copy of its size; says whether it did."""
    source = os.path.join(dataset.directory, entry["file"])
    target = os.path.join(place, entry["file"])
    if os.path.exists(target) and os.path.getsize(target) == entry["bytes"]:
        return False
    aside = f"{target}.tmp-{os.getpid()}"
    try:
        shutil.copyfile(source, aside)
        if files.digest_file(aside) != entry["sha256"]:
            raise UserError(
                f"{source} is damaged: its content is not what preprocess wrote; run"
                " preprocess again",
                ExitCode.BAD_DATA,
            )
        os.replace(aside, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)
    return True
