"""cluster.json in a model directory: what the leader tells the other tasks.

TensorFlow gives them no way to learn that training has ended, so that a parameter
server, an evaluator or a worker that is late would wait for ever.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os

from pipeline import files
from pipeline.types import UserError

FILE_NAME = "cluster.json"


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


def clear(directory: str) -> None:
    """Forgets an earlier session; call it before the leader can be connected to."""
    if not os.path.exists(_path(directory)):
        return
    with files.locked(directory), contextlib.suppress(FileNotFoundError):
        os.remove(_path(directory))


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
