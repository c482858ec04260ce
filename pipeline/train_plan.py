"""What train is about to do: all that is known before TensorFlow is loaded."""

from __future__ import annotations

import dataclasses
import math

from model_fns import registry
from pipeline import early_stopping, metric_order, model_dir, warm_start_plan
from pipeline.dataset import Dataset
from pipeline.early_stopping import Rule
from pipeline.estimator_options import DEFAULT_OPTIONS, EstimatorOptions
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.metric_order import MetricOrder
from pipeline.model_dir import TrainedModel
from pipeline.warm_start_plan import WarmStart


@dataclasses.dataclass(frozen=True)
class Plan:
    """A training.

    Attributes:
      model: What is trained, and where.
      settings: The flags.
      max_steps: Global step at which training ends.
      eval_steps: Steps between evaluations, each with a checkpoint.
      best: What makes a checkpoint the best.
      stopping: When to stop early; None means never.
      warm_start: What to begin with; None means fresh weights.
      reading: How rows are read.
      options: Further metrics, and how numbers are computed.
    """

    model: TrainedModel
    settings: TrainingFlags
    max_steps: int
    eval_steps: int
    best: MetricOrder
    stopping: Rule | None
    warm_start: WarmStart | None
    reading: InputFlags = DEFAULT_INPUT
    options: EstimatorOptions = DEFAULT_OPTIONS

    def configuration(self) -> dict:
        """Returns what decides, with the data, whether a training is complete."""
        stopping = self.stopping and dataclasses.asdict(self.stopping)
        return {
            **self.model.training.as_json(),
            "max_steps": self.max_steps,
            "early_stopping": stopping and {**stopping, "eval_steps": self.eval_steps},
            "exporters": list(self.settings.evaluation.exporters),
        }


def check_flags(settings: TrainingFlags, directory: str) -> None:
    """Checks what needs no dataset, so that it is said before one is made.

    Raises:
      UserError: As of `plan`.
    """
    evaluation = settings.evaluation
    metric_order.order(evaluation.best_metric, evaluation.best_mode, "best_mode")
    early_stopping.rule(evaluation)
    warm_start_plan.plan(settings.warm_start, directory)


def plan(
    directory: str,
    settings: TrainingFlags,
    dataset: Dataset,
    reading: InputFlags = DEFAULT_INPUT,
    options: EstimatorOptions = DEFAULT_OPTIONS,
) -> Plan:
    """Plans the training of a model directory on a dataset.

    Raises:
      UserError: The dataset lacks a label or rows, or the flags contradict each other
        or the dataset.
    """
    registry.check_task(
        registry.find(settings.model), dataset.declaration, dataset.directory
    )
    options.check(registry.find(settings.model), dataset.declaration)
    rows = dataset.shards("train").rows
    dataset.shards("eval")
    warm_start = warm_start_plan.plan(settings.warm_start, directory)
    training = model_dir.asked_training(
        settings,
        dataset.manifest.fingerprint,
        reading,
        warm_start and warm_start.as_json(),
    )
    constants = dataset.constants()
    if warm_start is not None:
        warm_start.check_label(dataset.declaration)
        constants = warm_start.keep_ids(constants, dataset.declaration)
    evaluation = settings.evaluation
    epoch_steps = math.ceil(rows / settings.batch_size)
    max_steps = settings.max_steps
    if max_steps is None:
        max_steps = math.ceil(settings.epochs * rows / settings.batch_size)
    return Plan(
        TrainedModel(directory, training, dataset.declaration, constants),
        settings,
        max_steps,
        evaluation.eval_steps or settings.checkpoint_steps or epoch_steps,
        metric_order.order(evaluation.best_metric, evaluation.best_mode, "best_mode"),
        early_stopping.rule(evaluation),
        warm_start,
        reading,
        options,
    )
