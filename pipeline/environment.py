"""The process environment: the one place that sets or reads its variables.

(`TF_USE_LEGACY_KERAS` is the exception: it belongs to `pipeline.compat`.)
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator

_CONTAINER_LIMIT = "/sys/fs/cgroup/memory.max"


def memory_bytes() -> int:
    """Returns how much memory this machine, or the container on it, has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open(_CONTAINER_LIMIT, encoding="ascii") as f:
            # "max" where there is no limit.
            return min(memory, int(f.read()))
    except (OSError, ValueError):
        return memory


def set_verbosity(verbosity: int) -> None:
    """Chooses how much libraries may say; call it before they are imported.

    Args:
      verbosity: -1 errors only, 0 our own progress as well, 1 everything that
        TensorFlow and Beam have to say.
    """
    noisy = verbosity >= 1
    if not noisy:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        warnings.filterwarnings("ignore")
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger().setLevel(logging.INFO if noisy else logging.ERROR)
    for name in ("apache_beam", "tensorflow", "absl"):
        logging.getLogger(name).setLevel(logging.INFO if noisy else logging.ERROR)


_TF_CONFIG = "TF_CONFIG"


def take_tf_config() -> str | None:
    """Returns TF_CONFIG and removes it, so that TensorFlow sees none unless told to.

    Every RunConfig and several strategies read it by themselves, whatever they are for.
    """
    return os.environ.pop(_TF_CONFIG, None)


@contextlib.contextmanager
def tf_config(value: dict) -> Iterator[None]:
    """Lets TensorFlow see a TF_CONFIG in the body; {} stands for none."""
    before = os.environ.pop(_TF_CONFIG, None)
    if value:
        os.environ[_TF_CONFIG] = json.dumps(value)
    try:
        yield
    finally:
        os.environ.pop(_TF_CONFIG, None)
        if before is not None:
            os.environ[_TF_CONFIG] = before


def with_tf_config(value: dict) -> dict[str, str]:
    """Returns the environment of a process that is a task of a cluster."""
    return {**os.environ, _TF_CONFIG: json.dumps(value)}


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Holds back what native code writes to standard error, unless the body fails."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            if failed:
                held.seek(0)
                shutil.copyfileobj(held, sys.stderr.buffer)


def load_tensorflow(verbosity: int) -> None:
    """Imports TensorFlow without its start-up messages.

    It writes them past Python, before its own log level is in force.
    """
    quiet = contextlib.nullcontext() if verbosity >= 1 else _quiet_stderr()
    with quiet:
        from pipeline.compat import tf

        # Looking for GPUs says something as well. It does not initialise devices, so
        # that they can still be configured.
        tf.config.list_physical_devices()
