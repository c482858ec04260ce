"""The framing of TFRecord files: enough to recognise one and to look at its start.

A record is its length (8 bytes), a checksum of that, the data and a checksum of it.
TensorFlow reads whole files and checks all of it; this imports nothing.
"""

from __future__ import annotations

import functools
import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

FRAMING_BYTES = 16
_HEADER = struct.Struct("<QI")
_MAX_SHOWN_RECORD = 64 << 20
_GZIP = b"\x1f\x8b"


@functools.cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _crc_table()[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def is_header(data: bytes) -> bool:
    """Whether a file that begins with `data` (uncompressed) is of TFRecords."""
    if len(data) < _HEADER.size:
        return False
    return _HEADER.unpack_from(data)[1] == _masked_crc(data[:8])


def is_gzip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == _GZIP


def _open(path: str) -> BinaryIO:
    return gzip.open(path) if is_gzip(path) else open(path, "rb")


def first_records(path: str, limit: int, limit_bytes: int) -> Iterator[bytes]:
    """Yields records from the start; stops at the first that is damaged.

    Raises:
      OSError: The file cannot be opened.
    """
    with _open(path) as file:
        try:
            seen = 0
            for _ in range(limit):
                header = file.read(_HEADER.size)
                if not is_header(header):
                    return
                size = _HEADER.unpack(header)[0]
                if size > _MAX_SHOWN_RECORD or seen > limit_bytes:
                    return
                record = file.read(size + 4)
                if len(record) < size + 4:
                    return
                seen += size
                yield record[:size]
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return


def content_bytes(path: str) -> int:
    """Returns the length of a file's content, decompressed.

    Raises:
      OSError, EOFError, zlib.error: The file cannot be read or is damaged.
    """
    if not is_gzip(path):
        return os.path.getsize(path)
    total = 0
    with gzip.open(path) as file:
        while data := file.read(1 << 20):
            total += len(data)
    return total
