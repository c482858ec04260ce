"""May training begin, or go on, in this model directory?"""

from __future__ import annotations

import dataclasses
import enum

from model_fns import registry
from pipeline import model_dir
from pipeline.flags.training import TrainingFlags
from pipeline.model_dir import TrainedModel, Training
from pipeline.types import Distribution, Label, UserError


def must_restart(
    new: Training,
    settings: TrainingFlags,
    directory: str,
    planned: TrainedModel | None = None,
) -> bool:
    """Compares the training that is asked for with the one in the directory.

    Args:
      new: What is asked for.
      settings: The training flags.
      directory: The model directory.
      planned: The model that is asked for, where its data is known already; with it
        the message lists the features that are others.

    Returns:
      Whether what is there must be set aside first.

    Raises:
      UserError: It was trained otherwise, and --on_change says stop, or going on is
        impossible.
    """
    old = model_dir.read_training(directory)
    if not model_dir.has_checkpoint(directory):
        # Nothing is lost: a run ended before its first checkpoint, if there was one.
        return False
    if old is None:
        raise UserError(
            f"--model_dir: {directory} holds checkpoints that this pipeline did"
            " not write; choose another directory"
        )
    changed = model_dir.differences(old, new)
    if not changed:
        return False
    if settings.on_change == "restart":
        return True
    if settings.on_change == "stop":
        if planned is not None:
            changed += _feature_changes(planned)
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
    decisive = registry.find(new.model).hparams.DECIDES_VARIABLES
    reshaped = [text for text in changed if text.split()[0] in decisive]
    if reshaped:
        raise UserError(
            f"--on_change=continue: {directory} has a checkpoint that cannot take"
            f" {', '.join(reshaped)}; use --on_change=restart"
        )
    return False


# `weights` gives a feature column's variables other names.
_SHAPING = ("embedding", "buckets", "oov_buckets", "part", "height", "width")
_SHAPING += ("channels", "shared", "weights")


def _structure(model: TrainedModel) -> dict[str, str]:
    """Returns, by feature, what decides the shapes of the model's variables."""
    constants = model.constants
    structure = {}
    for name, feature in model.declaration.features.items():
        text = f"{feature.KIND} for {feature.use}"
        for setting in _SHAPING:
            value = getattr(feature, setting, None)
            if value is not None:
                shown = value.value if isinstance(value, enum.Enum) else value
                text += f", {setting} {shown}"
        if name in constants.boundaries:
            text += f", {len(constants.boundaries[name])} boundaries"
        if name in constants.vocabularies:
            text += f", {len(constants.vocabularies[name])} terms"
        structure[name] = text
    return structure


def _label(model: TrainedModel) -> str:
    return "; ".join(map(_one_label, model.declaration.labels))


def _one_label(label: Label) -> str:
    if label.classes is None:
        normal = label.distribution is Distribution.NORMAL
        return "regression" + ("" if normal else f", {label.distribution.value}")
    several = "" if label.separator is None else "any of the "
    return f"{several}classes {', '.join(label.classes)}"


def _terms(model: TrainedModel, feature: str) -> frozenset[bytes]:
    return frozenset(model.constants.vocabularies.get(feature, ()))


def _feature_changes(model: TrainedModel) -> list[str]:
    """Returns how the model's features differ from those of its checkpoint, in words."""
    old = model_dir.open_model(model.directory)
    before, after = _structure(old), _structure(model)
    changed = []
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            changed.append(f"{name} ({before[name]} -> {after[name]})")
        elif _terms(old, name) != _terms(model, name):
            changed.append(f"{name} (other terms, though as many)")
    if _label(old) != _label(model):
        changed.append(f"the label ({_label(old)} -> {_label(model)})")
    lists = {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": changed,
    }
    return [f"{what} {', '.join(names)}" for what, names in lists.items() if names]


def check_same_structure(model: TrainedModel) -> TrainedModel:
    """Checks that the directory's checkpoint, if any, fits the features.

    Returns:
      The model to train: each vocabulary in the order of the checkpoint, since new
      data orders the same terms by other counts, and ids would change places.

    Raises:
      UserError: Features were added, removed or changed; the message lists them.
    """
    if not model_dir.has_checkpoint(model.directory):
        return model
    found = _feature_changes(model)
    if found:
        raise UserError(
            f"{model.directory}: its checkpoint was trained with other features"
            f" ({'; '.join(found)}); use --on_change=restart or another --model_dir"
        )
    trained = model_dir.open_model(model.directory).constants.vocabularies
    constants = dataclasses.replace(model.constants, vocabularies=trained)
    return dataclasses.replace(model, constants=constants)
