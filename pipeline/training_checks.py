"""May training begin, or go on, in this model directory?"""

from __future__ import annotations

import os

from pipeline import model_dir
from pipeline.flags.training import TrainingFlags
from pipeline.model_dir import TrainedModel, Training
from pipeline.types import UserError


def _has_checkpoint(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, "checkpoint"))


def must_restart(new: Training, settings: TrainingFlags, directory: str) -> bool:
    """Compares the training that is asked for with the one in the directory.

    Returns:
      Whether what is there must be set aside first.

    Raises:
      UserError: It was trained otherwise, and --on_change says stop, or going on is
        impossible.
    """
    old = model_dir.read_training(directory)
    if old is None:
        if _has_checkpoint(directory):
            raise UserError(
                f"--model_dir: {directory} holds checkpoints that this pipeline did"
                " not write; choose another directory"
            )
        return False
    changed = model_dir.differences(old, new)
    if not changed:
        return False
    if settings.on_change == "restart":
        return True
    if settings.on_change == "stop":
        raise UserError(
            f"{directory} was trained with other settings: {', '.join(changed)}."
            " Choose another --model_dir or --work_dir, or say --on_change=restart"
            " (keeps the old directory aside) or --on_change=continue"
        )
    if old.model != new.model:
        raise UserError(
            f"--on_change=continue: {directory} holds a {old.model}, which cannot"
            f" become a {new.model}; use --on_change=restart"
        )
    return False


def _structure(model: TrainedModel) -> dict[str, str]:
    """Returns, by feature, what decides the shapes of the model's variables."""
    constants = model.constants
    structure = {}
    for name, feature in model.declaration.features.items():
        text = f"{feature.KIND} for {feature.use}"
        for setting in ("embedding", "buckets", "oov_buckets"):
            if getattr(feature, setting, None) is not None:
                text += f", {setting} {getattr(feature, setting)}"
        if name in constants.boundaries:
            text += f", {len(constants.boundaries[name])} boundaries"
        if name in constants.vocabularies:
            text += f", {len(constants.vocabularies[name])} terms"
        structure[name] = text
    return structure


def check_same_structure(model: TrainedModel) -> None:
    """Checks that the directory's checkpoint, if any, fits the features.

    Raises:
      UserError: Features were added, removed or changed; the message lists them.
    """
    if not _has_checkpoint(model.directory):
        return
    before = _structure(model_dir.open_model(model.directory))
    after = _structure(model)
    changed = [
        f"{name} ({before[name]} -> {after[name]})"
        for name in before.keys() & after.keys()
        if before[name] != after[name]
    ]
    lists = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": changed,
    }
    found = [
        f"{what} {', '.join(sorted(names))}" for what, names in lists.items() if names
    ]
    if found:
        raise UserError(
            f"{model.directory}: its checkpoint was trained with other features"
            f" ({'; '.join(found)}); use --on_change=restart or another --model_dir"
        )
