"""The checkpoints in a model directory, as files; imports no TensorFlow."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator

from pipeline import files
from pipeline.types import UserError

STATE_FILE = "checkpoint"
_PREFIX = re.compile(r"(.*)-([0-9]+)")
_STATE_PATHS = re.compile(r'^\s*(\w+):\s*"((?:[^"\\]|\\.)*)"', re.M)
_PINNED = re.compile(r"\.pinned-(.+)-([0-9]+)")
_TRIES = 10


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint.

    Attributes:
      path: Its path prefix, as TensorFlow takes it.
      step: Global step, as its name says.
    """

    path: str
    step: int


def parts(path: str) -> list[str]:
    """Returns the files of a checkpoint; none where it is gone."""
    directory, prefix = os.path.split(path)
    if not os.path.isdir(directory):
        return []
    return sorted(
        os.path.join(directory, name)
        for name in os.listdir(directory)
        if name.startswith(f"{prefix}.")
    )


def read_state(directory: str) -> tuple[list[str], str | None]:
    """Returns the paths in the state file, oldest first, and that of the newest.

    Raises:
      UserError: It is there and cannot be read.
    """
    path = os.path.join(directory, STATE_FILE)
    try:
        state = files.read_text(path)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return [], None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    paths: list[str] = []
    newest = None
    for field, quoted in _STATE_PATHS.findall(state):
        path = os.path.join(directory, re.sub(r"\\(.)", r"\1", quoted))
        if field == "model_checkpoint_path":
            newest = path
        elif field == "all_model_checkpoint_paths":
            paths.append(path)
    if newest is not None:
        paths = [path for path in paths if path != newest] + [newest]
    return paths, newest


def listed(directory: str) -> list[Checkpoint]:
    """Returns the checkpoints that the state file lists and that exist, oldest first.

    The last one is where training goes on.
    """
    found = []
    for path in read_state(directory)[0]:
        match = _PREFIX.fullmatch(path)
        if match and os.path.exists(f"{path}.index"):
            found.append(Checkpoint(path, int(match.group(2))))
    return found


def repair(directory: str) -> Checkpoint | None:
    """Makes the state file name the newest checkpoint that exists.

    Where somebody removed the newest one to go back, TensorFlow would find none. Needs
    the lock of the directory.

    Returns:
      That checkpoint, where the state file named another one.
    """
    there = listed(directory)
    if not there or there[-1].path == read_state(directory)[1]:
        return None
    write_state(directory, [os.path.relpath(c.path, directory) for c in there])
    return there[-1]


def digest(path: str) -> str:
    """Returns a digest of a checkpoint's content."""
    return files.digest_value(
        [files.digest_file(part) for part in parts(path) if not part.endswith(".meta")]
    )


def write_state(directory: str, paths: list[str]) -> None:
    """Writes the state file; `paths` are relative to the directory, oldest first."""
    quoted = [path.replace("\\", "\\\\").replace('"', '\\"') for path in paths]
    lines = [f'model_checkpoint_path: "{quoted[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{path}"' for path in quoted]
    files.write_atomically(os.path.join(directory, STATE_FILE), "\n".join(lines) + "\n")


def limit(directory: str, keep: int) -> None:
    """Removes all listed checkpoints but the newest `keep`.

    TensorFlow's Saver removes at most one a save, so a limit that was lowered would
    not be reached. Needs the lock of the directory.
    """
    there = listed(directory)
    if len(there) <= keep:
        return
    write_state(directory, [os.path.relpath(c.path, directory) for c in there[-keep:]])
    for old in there[:-keep]:
        for part in parts(old.path):
            os.remove(part)


def link(path: str, directory: str) -> str:
    """Puts the files of a checkpoint into another directory.

    Hard links where the file system has them: they cost nothing, and stay when
    training removes its own names. The metagraph is left out, since only TensorFlow 1's
    import_meta_graph reads it.

    Returns:
      The path prefix there.

    Raises:
      FileNotFoundError: The checkpoint is gone, or goes at this moment.
    """
    sources = [part for part in parts(path) if not part.endswith(".meta")]
    if not any(part.endswith(".index") for part in sources):
        raise FileNotFoundError(path)
    for source in sources:
        files.link_or_copy(source, os.path.join(directory, os.path.basename(source)))
    return os.path.join(directory, os.path.basename(path))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _sweep_pins(directory: str) -> None:
    """Removes what killed readers of this host left."""
    for name in os.listdir(directory):
        match = _PINNED.fullmatch(name)
        if (
            match
            and match.group(1) == socket.gethostname()
            and not _is_running(int(match.group(2)))
        ):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def unpinned(path: str) -> str:
    """Returns where a pinned checkpoint was found, for messages."""
    directory, name = os.path.split(path)
    parent, pin = os.path.split(directory)
    return os.path.join(parent, name) if _PINNED.fullmatch(pin) else path


@contextlib.contextmanager
def pinned(find_path: Callable[[], str], directory: str) -> Iterator[str]:
    """Gives a checkpoint that stays whole whatever training removes meanwhile.

    In a directory where nothing may be written the checkpoint is read where it is.

    Args:
      find_path: Returns the path prefix of the wanted checkpoint; called again where
        that one disappears before it is pinned.
      directory: The model directory.

    Raises:
      UserError: The checkpoint disappears again and again.
    """
    if not os.access(directory, os.W_OK):
        yield find_path()
        return
    _sweep_pins(directory)
    pin = os.path.join(directory, f".pinned-{socket.gethostname()}-{os.getpid()}")
    try:
        yield _pin(find_path, directory, pin)
    finally:
        shutil.rmtree(pin, ignore_errors=True)


def _pin(find_path: Callable[[], str], directory: str, pin: str) -> str:
    for _ in range(_TRIES):
        shutil.rmtree(pin, ignore_errors=True)
        os.mkdir(pin)
        try:
            return link(find_path(), pin)
        except FileNotFoundError:
            continue
    raise UserError(f"{directory}: files of its checkpoint are missing")
