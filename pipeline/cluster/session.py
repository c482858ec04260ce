"""What the tasks of a cluster tell each other, in files of the model directory.

In cluster.json the leader says how far it is: TensorFlow gives the others no way to learn
that training has ended, so that a parameter server, an evaluator or a worker that is
late would wait for ever. In cluster-stop.json workers in step say after which step all of
them have to stop.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os

from pipeline import files
from pipeline.types import UserError

FILE_NAME = "cluster.json"
STOP_FILE_NAME = "cluster-stop.json"


class State(enum.Enum):
    """How far the leader is."""

    TRAINING = "training"
    ENDED = "ended"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class Session:
    """One run of a cluster.

    Attributes:
      state: How far it is.
      start_step: Global step at which it goes on.
      reason: Why it failed.
    """

    state: State
    start_step: int = 0
    reason: str | None = None


def _path(directory: str) -> str:
    return os.path.join(directory, FILE_NAME)


def _stop_path(directory: str) -> str:
    return os.path.join(directory, STOP_FILE_NAME)


def clear(directory: str) -> None:
    """Forgets an earlier session; call it before the leader can be connected to."""
    paths = [_path(directory), _stop_path(directory)]
    if not any(map(os.path.exists, paths)):
        return
    with files.locked(directory):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def write(directory: str, session: Session) -> None:
    os.makedirs(directory, exist_ok=True)
    value = dataclasses.asdict(session)
    files.write_json(_path(directory), {**value, "state": session.state.value})


def read(directory: str) -> Session | None:
    """Returns what the leader said last; None before it said anything."""
    try:
        value = files.read_json(_path(directory))
        return Session(**{**value, "state": State(value["state"])})
    except UserError:
        if not os.path.exists(_path(directory)):
            return None
        raise
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{_path(directory)} is not of this pipeline; remove it"
        ) from None


class StopTogether:
    """Lets workers in step stop after the same step, whichever of them has to.

    Saving a checkpoint takes all of them, so that none may leave before. No worker gets
    to the end of a step before all have begun it; what one writes between two steps the
    others therefore find when they have done the second.

    Args:
      directory: The model directory.
    """

    def __init__(self, directory: str):
        self._directory = directory
        self._last_step: int | None = None

    def is_due(self, step: int, is_asked: bool) -> bool:
        """Returns whether to stop now; call it after each step.

        Args:
          step: Global step.
          is_asked: Whether this worker has to stop.
        """
        path = _stop_path(self._directory)
        if self._last_step is None:
            if os.path.exists(path):
                self._last_step = int(files.read_json(path))
            elif is_asked:
                self._last_step = step + 1
                files.write_json(path, self._last_step)
        return self._last_step is not None and step >= self._last_step
