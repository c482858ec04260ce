"""Flags: Where the directories of a job are."""

from __future__ import annotations

import dataclasses
import os

from absl import flags


@dataclasses.dataclass(frozen=True)
class Paths:
    """The directories of a job; each stage writes exactly one of them.

    `work_dir` holds all that are not set apart, and what `retrain` keeps.
    """

    dataset: str
    model: str
    evaluation: str
    export: str
    serving: str
    work_dir: str


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "work_dir",
        "work",
        "Directory of the job. Below it, unless set apart: dataset/, and for each"
        " model NAME/model/ (checkpoints, TensorBoard), NAME/evaluation/ and"
        " NAME/export/.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "dataset_dir",
        None,
        "Where preprocess writes the dataset and the others read it.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "model_dir",
        None,
        "Checkpoints and TensorBoard events of the model.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "evaluation_dir", None, "Where evaluate writes metrics.", flag_values=values
    )
    flags.DEFINE_string(
        "export_dir",
        None,
        "Where export writes SavedModel versions, one numbered directory each.",
        flag_values=values,
    )

    for name in (
        "work_dir",
        "dataset_dir",
        "model_dir",
        "evaluation_dir",
        "export_dir",
    ):
        # E.g. --work_dir=$UNSET must not mean the current directory.
        flags.register_validator(
            name,
            lambda path: path is None or bool(path.strip()),
            "needs a directory",
            flag_values=values,
        )


def read(values: flags.FlagValues) -> Paths:
    def place(given: str | None, *parts: str) -> str:
        path = given or os.path.join(values.work_dir, *parts)
        return os.path.abspath(os.path.expanduser(path.strip()))

    # Of package.module:function; a colon means something in many paths.
    name = values.model.replace(":", ".")
    return Paths(
        dataset=place(values.dataset_dir, "dataset"),
        model=place(values.model_dir, name, "model"),
        evaluation=place(values.evaluation_dir, name, "evaluation"),
        export=place(values.export_dir, name, "export"),
        serving=place(None, "serving", name),
        work_dir=place(values.work_dir),
    )
