"""Errors of the machine, of which one line is enough to act on."""

from __future__ import annotations

import errno

_NUMBERS = (
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
)


def is_system_error(error: Exception) -> bool:
    """Whether it is the machine's fault rather than ours."""
    return isinstance(error, OSError) and error.errno in _NUMBERS
