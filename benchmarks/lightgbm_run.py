"""Trains LightGBM on the rows of a dataset and measures it on the test split."""

from __future__ import annotations

import dataclasses
import json

import numpy as np

from benchmarks import measure
from benchmarks.quality_run import roc_auc
from pipeline import environment
from pipeline.dataset import Dataset, open_dataset
from pipeline.types import ColumnType, Declaration, Hashed, Numeric


def _texts(declaration: Declaration, columns: tuple[str, ...]) -> list[str]:
    return [c for c in columns if declaration.columns[c].type is ColumnType.STRING]


def _frame(dataset: Dataset, split: str, columns: tuple[str, ...]):
    """Returns a split's columns as a data frame, and its labels, 0 or 1."""
    import pandas as pd

    from input_fns import records
    from pipeline import estimators

    declaration = dataset.declaration
    texts = _texts(declaration, columns)
    # The features decide which columns are read, and LightGBM may read others.
    features = {
        name: Hashed(name, name, 2) if name in texts else Numeric(name, name)
        for name in columns
    }
    read = records.eval_input_fn(
        estimators.to_records(dataset.shards(split)),
        dataclasses.replace(declaration, features=features),
        65_536,
    )
    batches = list(read().as_numpy_iterator())
    frame = pd.DataFrame(
        {
            name: np.concatenate([batch[name] for batch, _ in batches])
            for name in columns
        }
    )
    for name in texts:
        frame[name] = frame[name].str.decode("utf-8").astype("category")
    labels = np.concatenate([label for _, label in batches])
    return frame, labels == declaration.label.classes[1].encode()


def main(output: str, dataset_dir: str, columns: str, seed: str) -> None:
    """Prints AUC and log loss of LightGBM with its default settings.

    Args:
      output: Unused.
      dataset_dir: The dataset.
      columns: What it reads, divided by commas.
      seed: Its seed.
    """
    del output
    import lightgbm as lgb

    environment.load_tensorflow(-1)
    dataset = open_dataset(dataset_dir)
    names = tuple(columns.split(","))
    train, label = _frame(dataset, "train", names)
    test, truth = _frame(dataset, "test", names)
    for name in _texts(dataset.declaration, names):
        test[name] = test[name].cat.set_categories(train[name].cat.categories)
    # One thread: those of OpenMP wait for each other on a busy machine.
    settings = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    settings["seed"] = int(seed)
    with measure.stopwatch() as seconds:
        model = lgb.train(settings, lgb.Dataset(train, label), 100)
        spent = seconds()
    found = np.clip(model.predict(test), 1e-7, 1 - 1e-7)
    loss = -np.mean(np.where(truth, np.log(found), np.log(1 - found)))
    print(
        json.dumps(
            {"auc": roc_auc(truth, found), "loss": float(loss), "seconds": spent}
        )
    )
