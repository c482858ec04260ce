"""What a warm start begins with: all that is known before TensorFlow is loaded."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from pipeline import checkpoints, model_dir
from pipeline.flags.warm_start import WarmStartFlags
from pipeline.model_dir import TrainedModel
from pipeline.types import Constants, Declaration, UserError, groups


@dataclasses.dataclass(frozen=True)
class WarmStart:
    """The source of the first weights.

    Attributes:
      path: Path prefix of the checkpoint.
      digest: Of its content.
      model: The model it belongs to; None for a checkpoint that is not in a model
        directory of this pipeline, of which nothing but shapes is known.
      variables: Regular expression to be found in names of variables; None means
        weights and moving statistics.
      renamed: Beginnings of variable names: there, here.
    """

    path: str
    digest: str
    model: TrainedModel | None
    variables: str | None
    renamed: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Returns what decides about the weights."""
        return {
            "checkpoint": self.digest,
            "variables": self.variables,
            "renamed": [list(pair) for pair in self.renamed],
        }

    def keep_ids(self, constants: Constants, declaration: Declaration) -> Constants:
        """Returns constants whose vocabularies begin with the source's terms, in its
        order, so that terms keep their ids where none has gone."""
        if self.model is None:
            return constants
        there = self.model.constants.vocabularies
        # Features that share a vocabulary must go on to have the same one.
        of_group = {
            group: there[f.name]
            for group, members in groups(self.model.declaration.features).items()
            for f in members
            if f.name in there
        }
        vocabularies = {}
        for name, terms in constants.vocabularies.items():
            group = getattr(declaration.features[name], "shared", None)
            known = of_group.get(group, ()) if group else there.get(name, ())
            ours = set(terms)
            kept = [term for term in known if term in ours]
            before = set(kept)
            vocabularies[name] = (*kept, *(t for t in terms if t not in before))
        return dataclasses.replace(constants, vocabularies=vocabularies)

    def check_label(self, declaration: Declaration) -> None:
        """Checks that outputs mean the same.

        Raises:
          UserError: The classes are others, and --warm_start_vars does not say which
            variables to take all the same.
        """
        if self.model is None or self.variables is not None:
            return
        there, here = _classes(self.model.declaration), _classes(declaration)
        if there != here:
            raise UserError(
                f"--warm_start_from: {self.model.directory} predicts {there}, here it"
                f" is {here}; name the variables to take over by --warm_start_vars"
            )


def _classes(declaration: Declaration) -> str:
    return "; ".join(
        "a number" if label.classes is None else ", ".join(label.classes)
        for label in declaration.labels
    )


def _find_checkpoint(source: str) -> str:
    if os.path.isdir(source):
        there = checkpoints.listed(source)
        if not there:
            raise UserError(f"--warm_start_from: {source} holds no checkpoint")
        return there[-1].path
    if not os.path.exists(f"{source}.index"):
        raise UserError(
            f"--warm_start_from: there is no directory and no checkpoint {source}"
        )
    return source


def _model_of(checkpoint: str) -> TrainedModel | None:
    directory = os.path.dirname(checkpoint)
    if model_dir.read_training(directory) is None:
        return None
    return model_dir.open_model(directory)


def plan(settings: WarmStartFlags, directory: str) -> WarmStart | None:
    """Finds what the flags ask for.

    Args:
      settings: The flags.
      directory: The model directory that is to be trained.

    Raises:
      UserError: There is no such checkpoint, it is the model's own, or flags lack
        their companion.
    """
    if settings.source is None:
        if settings.variables is not None or settings.renamed:
            raise UserError(
                "--warm_start_vars and --warm_start_map need --warm_start_from"
            )
        return None
    path = _find_checkpoint(os.path.abspath(os.path.expanduser(settings.source)))
    inside = os.path.join(os.path.realpath(directory), "")
    if os.path.realpath(path).startswith(inside):
        raise UserError(
            f"--warm_start_from: {settings.source} is the model directory itself;"
            " training goes on from its checkpoint without this flag"
        )
    return WarmStart(
        path,
        checkpoints.digest(path),
        _model_of(path),
        settings.variables,
        settings.renamed,
    )
