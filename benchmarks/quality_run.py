"""Trains a model of the registry on a dataset and measures it on the test split."""

from __future__ import annotations

import contextlib
import json
import os
import sys

import numpy as np

from benchmarks import measure
from pipeline.exact_auc import ExactAuc


def roc_auc(truth: np.ndarray, scores: np.ndarray) -> float:
    """Returns the area under the ROC curve, exactly; ties count half.

    Args:
      truth: bool [rows].
      scores: Any number that rises with the probability, [rows].
    """
    return ExactAuc(truth, scores).value(np.ones(truth.size))


def _predictions(model_dir_path: str, dataset_dir: str):
    """Returns the probabilities of class 1 and the labels, bool, of the test split."""
    from input_fns import records
    from pipeline import estimators, model_dir
    from pipeline.dataset import open_dataset

    model = model_dir.open_model(model_dir_path)
    test = estimators.to_records(open_dataset(dataset_dir).shards("test"))
    read = records.eval_input_fn(test, model.declaration, 4096)
    predicted = np.concatenate(
        [
            batch["probabilities"][:, 1]
            for batch in estimators.make_estimator(model).predict(
                read, yield_single_examples=False
            )
        ]
    )
    second = model.declaration.label.classes[1].encode()
    labels = np.concatenate([label for _, label in read().as_numpy_iterator()])
    return predicted, labels == second


def main(
    output: str, dataset_dir: str, flagfile: str, model: str, hparams: str, seed: str
) -> None:
    """Prints AUC and log loss of a model.

    Args:
      output: The model directory.
      dataset_dir: The dataset.
      flagfile: Epochs and batch size.
      model: Name in the registry.
      hparams: Its hyper-parameters.
      seed: Of the run.
    """
    from pipeline import app

    with measure.stopwatch() as seconds, contextlib.redirect_stdout(sys.stderr):
        code = app.main(
            [
                "train",
                f"--flagfile={flagfile}",
                f"--dataset_dir={dataset_dir}",
                f"--model_dir={output}",
                f"--model={model}",
                f"--hparams={hparams}",
                f"--seed={seed}",
                # Curves of training are not looked at here.
                "--checkpoint_steps=1000000",
            ]
        )
        spent = seconds()
    if code:
        sys.exit(code)
    found, truth = _predictions(os.path.abspath(output), dataset_dir)
    safe = np.clip(found.astype(np.float64), 1e-7, 1 - 1e-7)
    loss = -np.mean(np.where(truth, np.log(safe), np.log(1 - safe)))
    print(
        json.dumps(
            {"auc": roc_auc(truth, found), "loss": float(loss), "seconds": spent}
        )
    )
