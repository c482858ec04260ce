"""Flags: The model and how it is trained."""

from __future__ import annotations

import dataclasses
import math

from absl import flags

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
      checkpoint_steps: Steps between checkpoints; None means once an epoch.
      keep_checkpoints: Number of newest checkpoints kept.
      summary_steps: Steps between points of the training curves.
      on_change: What to do where model_dir was trained with other settings.
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


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "model",
        "wide_deep",
        "Name of the model: wide_deep (premade Estimator) or keras_wide_deep (own"
        " model_fn from tf.keras layers).",
        flag_values=values,
    )
    flags.DEFINE_string(
        "hparams",
        "",
        "Hyper-parameters of the model, e.g. --hparams=hidden_units=[64,32],dropout=0.1"
        " (docs/models.md lists them).",
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
        "Steps between checkpoints, each followed by an evaluation on the eval"
        " split; by default one epoch.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "keep_checkpoints",
        3,
        "Number of newest checkpoints that are kept.",
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
    )
