"""Flags: The model and how it is trained."""

from __future__ import annotations

import dataclasses
import math

from absl import flags

from pipeline.flags import evaluation, warm_start, watching
from pipeline.flags.evaluation import EvaluationFlags
from pipeline.flags.warm_start import WarmStartFlags
from pipeline.flags.watching import WatchFlags

ON_CHANGE = ("stop", "restart", "continue")
_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class TrainingFlags:
    """Settings of train, as given.

    Attributes:
      model: Name of a model in the registry.
      hparams: `name=value,...` for the model.
      batch_size: Rows in a training step, over all replicas in sync.
      epochs: Passes over the training split; ignored where max_steps is given.
      max_steps: Global step at which training ends.
      seed: Seed of initialisation, shuffling and dropout.
      checkpoint_steps: Steps between checkpoints; None means at each evaluation.
      keep_checkpoints: Number of newest checkpoints kept.
      summary_steps: Steps between points of the training curves.
      on_change: What to do where model_dir was trained with other settings.
      checkpoint_secs: Seconds between checkpoints, in place of checkpoint_steps.
      keep_checkpoint_every_hours: Hours of training of which one checkpoint each is
        kept for good; None keeps none.
      steps_per_run: Steps that a call of the session runs.
      max_train_seconds: Seconds after which training pauses; None means never.
      evaluation: About evaluations while training.
      warm_start: About beginning from another model.
      watch: About watching the training.
    """

    model: str
    hparams: str
    batch_size: int
    epochs: float
    max_steps: int | None
    seed: int
    checkpoint_steps: int | None
    keep_checkpoints: int
    summary_steps: int
    on_change: str
    checkpoint_secs: int | None = None
    keep_checkpoint_every_hours: float | None = None
    max_train_seconds: int | None = None
    steps_per_run: int = 1
    evaluation: EvaluationFlags = EvaluationFlags()
    warm_start: WarmStartFlags = WarmStartFlags()
    watch: WatchFlags = WatchFlags()


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "model",
        "wide_deep",
        "Name of the model; `python -m pipeline models` lists them.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "hparams",
        "",
        "Hyper-parameters of the model, e.g. --hparams=hidden_units=[64,32],dropout=0.1"
        " (`python -m pipeline models NAME` explains them).",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "batch_size",
        512,
        "Rows in one training step, over all replicas that train in step. Workers that"
        " take steps of their own (parameter servers) take so many rows each.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_float(
        "epochs",
        10.0,
        "Passes over the training split.",
        lower_bound=0.001,
        upper_bound=1e6,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "max_steps",
        None,
        "Global step at which training ends; takes the place of --epochs.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "seed",
        1,
        "Seed of initial weights, shuffling and dropout; the same seed on the same"
        " machine gives the same model.",
        lower_bound=0,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "checkpoint_steps",
        None,
        "Steps between checkpoints; by default there is one at each evaluation (see"
        " --eval_steps).",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "checkpoint_secs",
        None,
        "Seconds between checkpoints, in place of --checkpoint_steps.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "keep_checkpoints",
        3,
        "Number of newest checkpoints that are kept; the best is kept besides.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_float(
        "keep_checkpoint_every_hours",
        None,
        "Also keep one checkpoint of each so many hours of training, for good.",
        lower_bound=0.01,
        upper_bound=1e6,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "max_train_seconds",
        None,
        "Seconds after which training pauses at a checkpoint; the same command goes on"
        " from there.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "steps_per_run",
        1,
        "Steps of training between two looks at it, as steps_per_execution of Keras: more"
        " are faster where a step is short. For models from Keras layers on one"
        " replica; progress, curves and time limits are as coarse.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "summary_steps",
        100,
        "Steps between points of the training curves in TensorBoard.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "on_change",
        "stop",
        ON_CHANGE,
        "What train does where the model directory was trained with other data or"
        " settings: stop with a message, restart (the old directory is kept aside)"
        " or continue from its checkpoint. More steps always continue.",
        flag_values=values,
    )

    flags.register_validator(
        "epochs", math.isfinite, "must be a number", flag_values=values
    )
    flags.register_multi_flags_validator(
        ["checkpoint_steps", "checkpoint_secs"],
        lambda given: None in given.values(),
        "give either --checkpoint_steps or --checkpoint_secs",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> TrainingFlags:
    return TrainingFlags(
        model=values.model,
        hparams=values.hparams,
        batch_size=values.batch_size,
        epochs=values.epochs,
        max_steps=values.max_steps,
        seed=values.seed,
        checkpoint_steps=values.checkpoint_steps,
        keep_checkpoints=values.keep_checkpoints,
        summary_steps=values.summary_steps,
        on_change=values.on_change,
        checkpoint_secs=values.checkpoint_secs,
        keep_checkpoint_every_hours=values.keep_checkpoint_every_hours,
        max_train_seconds=values.max_train_seconds,
        steps_per_run=values.steps_per_run,
        evaluation=evaluation.read(values),
        warm_start=warm_start.read(values),
        watch=watching.read(values),
    )
