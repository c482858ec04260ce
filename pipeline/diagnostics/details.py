"""An evaluation's details as files: details.json, and slices.csv for spreadsheets."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline import files
from pipeline.diagnostics import measures, slices
from pipeline.diagnostics.measures import Counts
from pipeline.diagnostics.rows import Rows
from pipeline.diagnostics.slices import Sliced
from pipeline.types import Task

DETAILS_FILE = "details.json"
SLICES_FILE = "slices.csv"


@dataclasses.dataclass(frozen=True, eq=False)
class Details:
    """What an evaluation tells beyond its metrics.

    Attributes:
      rows: Labels and predictions.
      counts: Decisions by threshold; None unless there are two classes.
      sliced: Metrics by slice.
    """

    rows: Rows
    counts: Counts | None
    sliced: Sliced


def make(rows: Rows, texts: Mapping[str, np.ndarray], min_rows: int) -> Details:
    """Computes the details.

    Args:
      rows: Labels and predictions.
      texts: Values of the chosen columns, [at least len(rows)].
      min_rows: Smaller slices are left out.
    """
    # Evaluation may leave out a last batch that is short.
    texts = {name: values[: len(rows)] for name, values in texts.items()}
    counts = measures.counts(rows) if rows.label.task is Task.BINARY else None
    return Details(rows, counts, slices.of_columns(rows, texts, min_rows))


def as_json(details: Details, step: int, split: str) -> dict[str, Any]:
    """Returns the content of details.json.

    Args:
      step: Global step of what was evaluated.
      split: Which rows these are.
    """
    rows, counts = details.rows, details.counts
    label = rows.label
    found: dict[str, Any] = {
        "global_step": step,
        "split": split,
        "rows": len(rows),
        "label": label.column,
        "task": label.task.name.lower(),
        "classes": label.classes and list(label.classes),
    }
    if counts is not None:
        found["auc"] = measures.auc(rows)
        found["roc"] = np.stack(
            [counts.false_positive_rate(), counts.recall()], axis=1
        ).tolist()
        found["pr"] = np.stack([counts.recall(), counts.precision()], axis=1).tolist()
    if label.task is not Task.MULTI_CLASS:
        found["calibration"] = [
            dataclasses.asdict(bin_) for bin_ in measures.calibration(rows)
        ]
    confusion = measures.confusion(rows)
    if confusion is not None:
        found["confusion"] = confusion.tolist()
    found["slices"] = [
        {
            "column": part.column,
            "value": part.value,
            "rows": part.rows,
            "metrics": dict(part.metrics),
        }
        for part in details.sliced.slices
    ]
    found["slices_left_out"] = dict(details.sliced.left_out)
    # A mean over nothing is null.
    return files.finite_or_null(found)


def _as_csv(sliced: Sliced) -> str:
    names = list(sliced.slices[0].metrics)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["column", "value", "rows", *names])
    for part in sliced.slices:
        values = [part.metrics[name] for name in names]
        writer.writerow([part.column, part.value, part.rows, *values])
    return text.getvalue()


def write(directory: str, details: Details, step: int, split: str) -> None:
    """Writes details.json, and slices.csv where there are slices."""
    path = os.path.join(directory, DETAILS_FILE)
    files.write_json(path, as_json(details, step, split))
    if details.sliced.slices:
        path = os.path.join(directory, SLICES_FILE)
        files.write_atomically(path, _as_csv(details.sliced))
