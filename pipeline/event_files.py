"""The event files of a directory, as TensorFlow names them."""

from __future__ import annotations

import glob
import os
import time

_POLL_SECONDS = 0.02


def wait_for_a_new_name(*directories: str) -> None:
    """Waits until a new event file would not take the name of one that is there.

    TensorFlow names event files by the second and the host, and empties one that
    already has this name; a training that goes on in the process within the second
    in which another one wrote would lose what that one wrote.

    Args:
      directories: Where event files will be written; they need not exist.
    """
    while any(_written_in(directory, int(time.time())) for directory in directories):
        time.sleep(_POLL_SECONDS)


def _written_in(directory: str, second: int) -> bool:
    pattern = f"{glob.escape(directory)}{os.sep}events.out.tfevents.{second:010}.*"
    return bool(glob.glob(pattern))
