"""The evaluations of a training, in model_dir/evaluations.json.

An evaluation is written there last, after all that follows from it (the best checkpoint,
exports). So a checkpoint whose evaluation is missing has to be evaluated (again).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from pipeline import files
from pipeline.types import UserError

FILE_NAME = "evaluations.json"


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Metrics of the eval split at a step."""

    global_step: int
    metrics: Mapping[str, float]


def read(directory: str) -> list[Evaluation]:
    """Returns a model directory's evaluations in the order of their steps.

    Raises:
      UserError: The file is not of this pipeline.
    """
    path = os.path.join(directory, FILE_NAME)
    if not os.path.exists(path):
        return []
    try:
        return [
            Evaluation(
                int(entry["global_step"]),
                {name: float(value) for name, value in entry["metrics"].items()},
            )
            for entry in files.read_json(path)
        ]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise UserError(f"{path} is not of this pipeline; remove it") from None


def _write(directory: str, evaluations: list[Evaluation]) -> None:
    files.write_json(
        os.path.join(directory, FILE_NAME),
        [
            {
                "global_step": evaluation.global_step,
                # JSON has no NaN and no infinity; these stand as text.
                "metrics": {
                    name: value if abs(value) < float("inf") else str(value)
                    for name, value in evaluation.metrics.items()
                },
            }
            for evaluation in evaluations
        ],
    )


def record(directory: str, evaluation: Evaluation) -> None:
    """Adds an evaluation; takes the place of one at the same step."""
    others = [e for e in read(directory) if e.global_step != evaluation.global_step]
    _write(directory, sorted([*others, evaluation], key=lambda e: e.global_step))


def drop_after(directory: str, step: int) -> bool:
    """Removes evaluations of steps that training has yet to reach (again).

    Returns:
      Whether there were any.
    """
    there = read(directory)
    kept = [e for e in there if e.global_step <= step]
    if kept != there:
        _write(directory, kept)
    return kept != there
