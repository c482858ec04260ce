"""Further tries where a file system fails for a moment.

Network file systems and worn disks report errors for what works a second later.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_ERRORS = (
    errno.EAGAIN,
    errno.ECONNABORTED,
    errno.ECONNRESET,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EINTR,
    errno.EIO,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
    errno.EREMOTEIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
)
PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try."""
# TensorFlow has no codes for most of them, and puts the C library's text behind the path.
_IN_MESSAGE = re.compile(
    rf"(?:\S*); (?:{'|'.join(re.escape(os.strerror(number)) for number in _ERRORS)})"
)


def pause(seconds: float) -> None:
    """Waits before another try."""
    time.sleep(seconds)


def retried(action: Callable[[], _T], path: str) -> _T:
    """Does something with a file, again after a pause where it fails for a moment.

    Says so once, on standard error.

    Args:
      action: Does it; may be called again after it raised.
      path: The file, for the message.

    Raises:
      OSError: As of `action`: of another kind, or of the last try, `sum(PAUSES)` seconds
        after the first.
    """
    for number, seconds in enumerate(PAUSES):
        try:
            return action()
        except OSError as error:
            if error.errno not in _ERRORS:
                raise
            if number == 0:
                print(
                    f"warning: {path}: {error.strerror}; trying again for"
                    f" {sum(PAUSES):g} seconds",
                    file=sys.stderr,
                    flush=True,
                )
        pause(seconds)
    return action()


def in_message(message: str) -> str | None:
    """Returns what TensorFlow says of a file that may be fine in a moment.

    Args:
      message: Text of a tf.errors.OpError.

    Returns:
      E.g. "/work/train.tfrecord; Input/output error", or None.
    """
    found = _IN_MESSAGE.search(message)
    return found and found.group()
