"""Runs of the preprocess stage, and what is in the dataset afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from input_fns import records as input_records
from pipeline import dataset as datasets
from pipeline import direct, estimators
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import stage

_DIRECT: dict[str, datasets.Dataset] = {}


def data_flags(value: str | Path, features: str | Path | None = None, **changes):
    values = {
        "input": str(value),
        "features": str(features) if features else None,
        "label": None,
        "max_reject_fraction": 0.01,
        "shard_mb": 64,
        "beam_options": (),
    }
    return DataFlags(**{**values, **changes})


def preprocess(directory: Path, value, features=None, **changes):
    """Runs the stage; returns its manifest."""
    settings = data_flags(value, features, **changes)
    return stage.run(str(directory), stage.plan(settings), Console(-1))


def read_directly(directory: Path, value, features=None, **changes):
    """Reads the files without the stage, under the name of a directory that is none.

    Returns its manifest; `records` and `all_values` know it by that name.
    """
    settings = data_flags(value, features, **changes)
    found = direct.read(
        stage.plan(settings), 1024, f"{directory}.rejects.jsonl", Console(-1)
    )
    _DIRECT[str(directory)] = found
    return found.manifest


def opened(directory: Path) -> datasets.Dataset:
    """Returns what `preprocess` or `read_directly` made."""
    return _DIRECT.get(str(directory)) or datasets.open_dataset(str(directory))


def records(directory: Path) -> dict[str, list[bytes]]:
    """Returns each split's rows as serialized Examples, in order."""
    dataset = opened(directory)
    columns = tuple(dataset.declaration.columns.values())
    return {
        split: list(input_records.serialized_rows(estimators.to_records(rows), columns))
        for split, rows in dataset.splits.items()
    }


def values(record: bytes) -> dict[str, Any]:
    """Returns the value of each feature of a serialized Example."""
    found = {}
    for name, feature in tf.train.Example.FromString(record).features.feature.items():
        (found[name],) = getattr(feature, feature.WhichOneof("kind")).value
    return found


def all_values(directory: Path) -> list[dict[str, Any]]:
    """Returns the rows of all splits, in no certain order."""
    return [values(r) for split in records(directory).values() for r in split]
