"""The marker DONE in a model directory: training has ended, one way or the other.

Whoever follows a training (evaluate --noeval_only_once) ends with it, since reaching
max_steps is only one of the ways in which training ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os

from pipeline import files
from pipeline.types import UserError

FILE_NAME = "DONE"


@dataclasses.dataclass(frozen=True)
class Done:
    """How a training ended.

    Attributes:
      global_step: The step it reached.
      failure: Why it failed; None where it did not.
    """

    global_step: int
    failure: str | None = None


def write(directory: str, done: Done) -> None:
    files.write_json(os.path.join(directory, FILE_NAME), dataclasses.asdict(done))


def remove(directory: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(directory, FILE_NAME))


def read(directory: str) -> Done | None:
    """Returns the marker, or None while training runs or was killed.

    Raises:
      UserError: It is not of this pipeline.
    """
    path = os.path.join(directory, FILE_NAME)
    if not os.path.exists(path):
        return None
    try:
        return Done(**files.read_json(path))
    except TypeError:
        raise UserError(f"{path} is not of this pipeline; remove it") from None
