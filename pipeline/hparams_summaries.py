"""A training's settings for TensorBoard's HParams dashboard.

The dashboard finds the metrics by itself, in the curves of the run and of its eval/.
"""

from __future__ import annotations

import dataclasses
import glob
import os
from typing import Any

from tensorboard.plugins.hparams import api_pb2, summary, summary_v2

from pipeline import event_files, files
from pipeline.compat import tf
from pipeline.model_dir import TrainedModel

_v1 = tf.compat.v1
_SUFFIX = ".hparams-"
# Of what the dashboard does not ask for; no point of a curve stands before step 1.
_STEP = 1


def _plain(value: Any) -> bool | float | str:
    if isinstance(value, (bool, int, float, str)):
        return value
    return str(list(value) if isinstance(value, tuple) else value)


def values(model: TrainedModel, max_steps: int) -> dict[str, bool | float | str]:
    """Returns the settings that runs are compared by.

    These are all hyper-parameters of the model, whether given or not, and what decides
    how it is trained.
    """
    settings = model.settings()
    found: dict[str, Any] = dict(model.training.hparams)
    if dataclasses.is_dataclass(settings):
        found |= {
            field.name: getattr(settings, field.name)
            for field in dataclasses.fields(settings)
        }
    found |= {
        "model": model.training.model,
        "batch_size": model.training.batch_size,
        "seed": model.training.seed,
        "max_steps": max_steps,
    }
    return {name: _plain(value) for name, value in found.items() if value is not None}


def write(model: TrainedModel, max_steps: int) -> None:
    """Writes the settings of a training that has ended, in place of earlier ones."""
    directory = model.directory
    found = values(model, max_steps)
    suffix = f"{_SUFFIX}{files.digest_value(found)[:8]}"
    there = glob.glob(os.path.join(glob.escape(directory), f"events.*{_SUFFIX}*"))
    if any(path.endswith(suffix) for path in there):
        return
    for path in there:
        os.remove(path)
    writer = event_files.open_writer(directory, suffix)
    for made in (
        summary_v2.hparams_pb(found, trial_id=os.path.abspath(directory)),
        summary.session_end_pb(api_pb2.STATUS_SUCCESS),
    ):
        writer.add_summary(_v1.Summary.FromString(made.SerializeToString()), _STEP)
    writer.close()
