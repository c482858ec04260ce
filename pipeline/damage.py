"""One line for TensorFlow's errors about damaged files and values not allowed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from pipeline import checkpoints, transient
from pipeline.compat import tf
from pipeline.dataset import Dataset
from pipeline.types import ExitCode, UserError


def _first_unreadable(checkpoint: str) -> str | None:
    """Returns why a checkpoint cannot be read; None if it can."""
    try:
        reader = tf.train.load_checkpoint(checkpoint)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception as error:  # IndexError where data ends early, and others.
        return str(error)
    return None


def check_checkpoint(path: str) -> None:
    """Checks that every variable of a checkpoint can be read.

    Raises:
      UserError: One cannot.
    """
    reason = _first_unreadable(path)
    if reason is not None:
        raise UserError(
            f"the checkpoint {checkpoints.unpinned(path)} is damaged ({reason}):"
            " restore its files, or remove the model directory and train again",
            ExitCode.BAD_DATA,
        )


# What `model_fns/images.py` says of a value, and where TensorFlow fails to decode one.
_NO_IMAGE = re.compile(
    r"feature (\S+): a value of column .* is no JPEG or PNG image"
    r"|\{\{node (?:\S+/)?([^/\s]+)/DecodeImage\}\}"
)


def _check_images(error: tf.errors.OpError, dataset: Dataset) -> None:
    """Checks that the error is not about an image that cannot be decoded."""
    found = _NO_IMAGE.search(str(error))
    feature = dataset.declaration.features.get(found and (found[1] or found[2]))
    if feature is not None:
        raise UserError(
            f"feature {feature.name}: a value of column {feature.column} is no JPEG or"
            " PNG image that can be decoded; remove such rows from the input, or leave"
            " their image out, and run preprocess again",
            ExitCode.BAD_DATA,
        ) from error


# What `input_fns/labels.py` and `model_fns/heads.py` say of labels.
_BAD_LABEL = re.compile(r"assertion failed: \[(label [^\]]+):\s*\] \[(.{0,200})")


def _check_labels(error: tf.errors.OpError) -> None:
    """Checks that the error is not about labels that are not allowed."""
    found = _BAD_LABEL.search(str(error))
    if found is not None:
        raise UserError(
            f"{found[1]}: {found[2].split(']')[0]}; correct the rows, or the label in the"
            " feature declaration",
            ExitCode.BAD_DATA,
        ) from error


def _check_files_work(error: tf.errors.OpError) -> None:
    """Checks that the error is not about a file system that fails for a while."""
    said = transient.in_message(str(error))
    if said is not None:
        raise UserError(
            f"{said}; if it is a passing fault, the same command goes on from the last"
            " complete stage or checkpoint",
            ExitCode.TRY_AGAIN,
        ) from error


@contextlib.contextmanager
def explained(dataset: Dataset, checkpoint: str | None) -> Iterator[None]:
    """Turns errors about files, images and labels into one line.

    TensorFlow's own message names a position at best. Files are only looked at when
    an error occurs; an error that none of them explains is raised as it is.

    Args:
      dataset: What the body reads.
      checkpoint: What the body restores; None for nothing.

    Raises:
      UserError: A record file, the checkpoint or an image is damaged, or a label is
        not allowed (BAD_DATA); or a file system fails (TRY_AGAIN).
    """
    try:
        yield
    except tf.errors.OpError as error:
        _check_files_work(error)
        path = dataset.find_damaged()
        if path is not None:
            raise UserError(
                f"{path} is damaged: its content is not what preprocess wrote; run"
                " preprocess again",
                ExitCode.BAD_DATA,
            ) from error
        _check_images(error, dataset)
        _check_labels(error)
        if checkpoint is not None:
            check_checkpoint(checkpoint)
        raise
