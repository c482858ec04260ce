"""The best checkpoint of a model directory, kept aside in `best/`.

It is a model directory of its own, out of reach of the limit on kept checkpoints, with
the constants that the checkpoint was trained with, and best.json with its metrics.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
from collections.abc import Mapping

from pipeline import checkpoints, files, model_dir
from pipeline.metric_order import MetricOrder
from pipeline.model_dir import TrainedModel

DIRECTORY = "best"
_FILE = "best.json"


@dataclasses.dataclass(frozen=True)
class Best:
    """The best evaluation so far.

    Attributes:
      metric: The metric that decided.
      mode: "min" or "max".
      value: The metric's value.
      global_step: Step of the checkpoint.
      metrics: All metrics of that evaluation that are finite.
      path: The checkpoint's path prefix.
    """

    metric: str
    mode: str
    value: float
    global_step: int
    metrics: Mapping[str, float]
    path: str


def read(directory: str) -> Best | None:
    """Returns the best of a model directory, if one is kept.

    Raises:
      UserError: Its file is not of this pipeline.
    """
    place = os.path.join(directory, DIRECTORY)
    path = os.path.join(place, _FILE)
    if not os.path.exists(path):
        return None
    values = files.read_fields(path, Best)
    values["path"] = os.path.join(place, os.path.basename(values["path"]))
    return Best(**values)


def is_better(directory: str, metrics: Mapping[str, float], order: MetricOrder) -> bool:
    """Returns whether an evaluation beats the best so far by that metric.

    Where another metric decided before, its checkpoint's value of the new one counts.
    """
    new = order.value(metrics)
    old = read(directory)
    return order.better(
        new,
        float("nan") if old is None else old.metrics.get(order.metric, float("nan")),
    )


def keep(
    model: TrainedModel,
    checkpoint: str,
    metrics: Mapping[str, float],
    order: MetricOrder,
) -> None:
    """Makes a checkpoint the best one; a kill leaves the old or the new one.

    Args:
      model: The model that is trained.
      checkpoint: Path prefix of the checkpoint.
      metrics: Plain numbers, global_step among them.
      order: What decides.
    """
    with files.staged_directory(os.path.join(model.directory, DIRECTORY)) as aside:
        model_dir.write(dataclasses.replace(model, directory=aside))
        path = os.path.basename(checkpoints.link(checkpoint, aside))
        checkpoints.write_state(aside, [path])
        best = Best(
            order.metric,
            order.mode,
            order.value(metrics),
            int(metrics["global_step"]),
            {n: v for n, v in metrics.items() if math.isfinite(v)},
            path,
        )
        files.write_json(os.path.join(aside, _FILE), dataclasses.asdict(best))


def open_model(directory: str) -> TrainedModel:
    """Returns the best model, as it was trained; its directory is `best/`."""
    return model_dir.open_model(os.path.join(directory, DIRECTORY))


def forget_another(model: TrainedModel) -> None:
    """Removes the best of a training that was another one; needs the lock."""
    place = os.path.join(model.directory, DIRECTORY)
    files.sweep_leftovers(place)
    training = model_dir.read_training(place)
    if training is not None and training.as_json() != model.training.as_json():
        shutil.rmtree(place)
