"""Files as plain bytes: decompressed, without a byte order mark, errors named."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from typing import BinaryIO

import pyarrow as pa

from pipeline.types import ExitCode, UserError

_UTF8_BOM = b"\xef\xbb\xbf"
# A column may well be called "BZh9": the block's own magic settles it.
_BZ2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
LINE_END = re.compile(rb"\r\n|\n|\r")

_NO_TEXT = {
    b"PK\x03\x04": "a zip archive or spreadsheet; unpack it or save it as CSV",
    b"PAR1": "a Parquet file; read it with --input_format=parquet",
    b"\xfd7zX": "compressed with xz; use gzip, bz2 or zstd",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


class ByteSource:
    """The bytes of one file, read forwards.

    gzip (all members), bz2 and zstd are recognised by content, never by name.
    A carriage return is never the last byte of a `read`, unless the file ends
    there, so that CRLF is never seen in two halves.

    Args:
      path: A local file.
      start: First byte to read of a plain file. Only from 0 on is a file looked at
        for compression and a byte order mark.
      end: Byte before which to stop; None for the end of the file.

    Attributes:
      path: The file.
      format: "plain", or its compression.
      offset: Place in the file of the first byte that is read.

    Raises:
      UserError: The file cannot be opened or is plainly no text file.
    """

    def __init__(self, path: str, start: int = 0, end: int | None = None):
        self.path = path
        self.format = "plain"
        self.offset = start
        self._left = None if end is None else end - start
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            self._stream, self._held = self._file, b""
            if start:
                self._file.seek(start)
            else:
                self._stream = self._decompressed()
                self._held = self._start()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(self, *unused) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def position(self) -> int:
        """How many bytes of the file, as it is stored, have been read."""
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """Returns about `size` bytes; none at all only at the end of the file.

        Raises:
          UserError: Reading failed; with BAD_DATA when compressed data is cut
            off or damaged.
        """
        while True:
            more = self._read(size)
            data, self._held = self._held + more, b""
            if not more or not data.endswith(b"\r"):
                return data
            self._held = b"\r"
            if len(data) > 1:
                return data[:-1]

    def _decompressed(self) -> BinaryIO | pa.CompressedInputStream:
        try:
            magic = self._file.peek(10)[:10]
        except OSError as error:
            raise self._unreadable(error) from error
        if magic.startswith(b"\x1f\x8b"):
            self.format = "gzip"
            return gzip.GzipFile(fileobj=self._file)
        if _BZ2.match(magic):
            self.format = "bz2"
            return bz2.BZ2File(self._file)
        if magic.startswith(b"\x28\xb5\x2f\xfd"):
            self.format = "zstd"
            return pa.CompressedInputStream(pa.PythonFile(self._file, "r"), "zstd")
        return self._file

    def _start(self) -> bytes:
        """Reads the first bytes and returns them without the mark."""
        start = b""
        while len(start) < 4 and (more := self._read(4 - len(start))):
            start += more
        for magic, what in _NO_TEXT.items():
            if start.startswith(magic):
                raise UserError(f"{self.path} is no text file: it is {what}")
        if start.startswith(_UTF8_BOM):
            self.offset = len(_UTF8_BOM)
        return start.removeprefix(_UTF8_BOM)

    def _read(self, size: int) -> bytes:
        if self._left is not None:
            size = min(size, self._left)
        try:
            data = self._stream.read(size)
        except (EOFError, zlib.error, OSError) as error:
            if self.format == "plain":
                raise self._unreadable(error) from error
            raise UserError(
                f"{self.path}: the {self.format} data is cut off or damaged ({error})",
                ExitCode.BAD_DATA,
            ) from error
        if self._left is not None:
            self._left -= len(data)
        return data

    def _unreadable(self, error: Exception) -> UserError:
        reason = getattr(error, "strerror", None) or str(error)
        return UserError(f"{self.path} cannot be read: {reason}")


def skip_line(source: ByteSource, size: int) -> bytes:
    """Reads past the next line end and returns what was read after it."""
    while data := source.read(size):
        if end := LINE_END.search(data):
            return data[end.end() :]
    return b""
