"""Going on after a crash: damaged checkpoints, and places that cannot be written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pipeline import checkpoints, damage
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.types import UserError

_PREFIX = "damaged-"
# As the C library words them; TensorFlow has no codes for these.
_CANNOT_WRITE = (
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
)


def _is_usable(path: str) -> bool:
    """Whether a checkpoint can be read, and is not that of the start."""
    try:
        damage.check_checkpoint(path)
    except UserError:
        return False
    return int(tf.train.load_variable(path, "global_step")) > 0


def _set_aside(path: str) -> None:
    for part in checkpoints.parts(path):
        directory, name = os.path.split(part)
        os.replace(part, os.path.join(directory, f"{_PREFIX}{name}"))


def fall_back(directory: str, console: Console) -> None:
    """Makes the newest checkpoint that can be read the newest one; needs the lock.

    Newer ones, which a crash cut short or somebody removed, are kept as
    damaged-model.ckpt-*. Where only the checkpoint of step 0 is left, all stays as it
    is, since going on would mean to begin anew without being asked.

    Args:
      directory: The model directory.
      console: Where to say so.
    """
    paths, _ = checkpoints.read_state(directory)
    damaged = []
    while paths and not _is_usable(paths[-1]):
        damaged.append(paths.pop())
    if not damaged or not paths:
        return
    for path in damaged:
        _set_aside(path)
    earlier = checkpoints.repair(directory)
    names = ", ".join(os.path.basename(path) for path in damaged)
    console.progress(
        f"train: {names} in {directory} is damaged or missing; goes back to the one of"
        f" step {earlier.step:,}; what is left of it is now {_PREFIX}*"
    )


@contextlib.contextmanager
def explained_writes(directory: str) -> Iterator[None]:
    """Turns TensorFlow's errors about a full or read-only disk into one line.

    Raises:
      UserError: The directory can no longer be written.
    """
    try:
        yield
    except tf.errors.OpError as error:
        reason = next((text for text in _CANNOT_WRITE if text in str(error)), None)
        if reason is None:
            raise
        raise UserError(
            f"cannot write in {directory}: {reason}. What was saved before is whole;"
            " make room, or give the permission, and the same command goes on"
        ) from error
