"""Which data a command reads: a dataset that preprocess wrote, or raw files."""

from __future__ import annotations

import os

from model_fns import registry
from pipeline import environment, record_cache
from pipeline import manifest as manifests
from pipeline.dataset import REJECTS_FILE, Dataset, open_dataset
from pipeline.flags import input as input_flags
from pipeline.flags.input import DATASET, DIRECT, InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.invocation import Invocation
from pipeline.preprocess import stage
from pipeline.types import UserError

# Flags that say how raw files are read.
_RAW_FLAGS = ("input_format", "delimiter", "columns", "run_date", "skip_bad_records")
_RAW_FLAGS += ("features", "label", "max_reject_fraction", "schema")


def _choose(call: Invocation) -> str:
    """Returns DATASET or DIRECT.

    --input on the command line is what is read. In a flagfile, which may serve
    several commands, it may be there for preprocess: then a dataset comes first.
    """
    settings, data, given = call.input, call.data, call.given
    dataset_dir = call.paths.dataset
    choice = settings.input_fn
    if choice not in (DATASET, DIRECT):
        if {"input", "dataset_dir"} <= given:
            raise UserError(
                "--input reads raw files and --dataset_dir a dataset: give one of them,"
                " or say --input_fn=direct or --input_fn=dataset"
            )
        there = manifests.read(dataset_dir) is not None
        choice = DIRECT if data.input and ("input" in given or not there) else DATASET
    if choice == DIRECT and not data.input:
        raise UserError("--input_fn=direct needs --input: the files to read")
    if choice == DATASET:
        unused = sorted(given.intersection(_RAW_FLAGS))
        if unused:
            raise UserError(
                f"--{unused[0]} has no effect without --input on the command line: the"
                f" dataset in {dataset_dir} is read, as preprocess wrote it"
            )
    elif settings.cache not in (input_flags.NO_CACHE, input_flags.MEMORY_CACHE):
        raise UserError(
            f"--cache={settings.cache} copies the files of a dataset; rows of --input"
            " are held in memory: leave it out"
        )
    return choice


def check_training(settings: InputFlags, training: TrainingFlags, verbosity: int):
    """Checks what can be checked before any data is looked at.

    Raises:
      UserError: Flags contradict each other, or --input_fn names no function.
    """
    if not settings.repeat and training.epochs != int(training.epochs):
        raise UserError(
            f"--norepeat: --epochs={training.epochs:g} is no whole number, and the data"
            " can only end with an epoch"
        )
    if settings.input_fn is not None and ":" in settings.input_fn:
        # First, since the user's module may import TensorFlow in another way.
        environment.load_tensorflow(verbosity)
        from pipeline import user_input

        user_input.find(settings.input_fn)


def check_not_training(settings: InputFlags, given: frozenset[str], command: str):
    """Checks that a command is not asked to read rows that are for training only."""
    if "input_fn" in given and settings.input_fn not in (DATASET, DIRECT):
        raise UserError(
            f"--input_fn={settings.input_fn} is for training; {command} reads dataset"
            " or direct"
        )


def open_data(call: Invocation) -> tuple[Dataset, str]:
    """Opens a dataset, or reads raw files.

    Returns:
      The data, and the text of a flagfile that means the same.

    Raises:
      UserError: There is none, or a file, flag or declaration is wrong.
    """
    choice = _choose(call)
    flagfile = call.flagfile
    if call.input.input_fn is None:
        flagfile += f"--input_fn={choice}\n"
    open_ = _open_dataset if choice == DATASET else _read_input
    return open_(call), flagfile


def _open_dataset(call: Invocation) -> Dataset:
    dataset = open_dataset(call.paths.dataset)
    cache = call.input.cache
    if cache in (input_flags.NO_CACHE, input_flags.MEMORY_CACHE):
        return dataset
    directory = os.path.abspath(os.path.expanduser(cache))
    return record_cache.copied(dataset, directory, call.console)


def _read_input(call: Invocation) -> Dataset:
    plan = stage.plan(call.data, call.schema)
    registry.check_task(
        registry.find(call.training.model),
        plan.declaration,
        call.data.features or "the inferred declaration (give --label=COLUMN)",
    )
    # Some sources need it, and it must not say anything when they first do.
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import direct

    rejects = f"{call.paths.dataset}.{REJECTS_FILE}"
    return direct.read(plan, call.input.direct_mb, rejects, call.console)
