"""TFRecord shards of a dataset: written under names no reader matches, then named.

Writers on many workers do not know how many shards there will be, and a worker
that is retried writes its rows again. So every shard is written to a name of its
own, and `finalize` gives the shards that count their names: in the order of their
keys, so that two runs over the same data make the same files.

A split without rows has no shards: a reader finds no file of that split, which it
can report, while an empty file would train or evaluate on nothing in silence.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
import uuid
from collections.abc import Iterable

from pipeline import files

TEMPORARY_PREFIX = ".tmp-"
_SUFFIX = ".tfrecord"
_FRAMING_BYTES = 16
"""Length, its checksum and the data's checksum, which TFRecord adds to a record."""


@dataclasses.dataclass(frozen=True)
class ShardInfo:
    """A written shard.

    Attributes:
      split: Name of the split.
      order_key: Place of the shard's rows in the data, as given to the writer.
      path: The file.
      rows: Number of rows in its records.
      bytes: Size of the file.
      digest: SHA-256 of the file in hexadecimal.
      part: Number of the shard among those of the same writer, from 0.
    """

    split: str
    order_key: str
    path: str
    rows: int
    bytes: int
    digest: str
    part: int = 0


class ShardWriter:
    """Writes the rows of one split into shards of limited size.

    Use as a context manager, or call `close`. On an exception the files are
    removed, since they hold part of the rows.

    Args:
      directory: Where to write; it must exist.
      split: Name of the split.
      order_key: Sorts the shards of a split. Must be the same whenever the same
        rows are written, and differ between writers of a split.
      shard_bytes: A shard is closed once it holds so many bytes, so it exceeds
        them by less than one record.
    """

    def __init__(
        self,
        directory: str,
        split: str,
        order_key: str,
        shard_bytes: int = 64 * 2**20,
    ):
        self._directory = directory
        self._split = split
        self._order_key = order_key
        self._shard_bytes = shard_bytes
        self._writer = None
        self._write = None
        self._path = ""
        self._rows = 0
        self._bytes = 0
        self._shards: list[ShardInfo] = []

    def write(self, records: Iterable[bytes], rows: Iterable[int] | None = None):
        """Appends serialized examples.

        Args:
          records: The examples.
          rows: How many rows each holds; one each without it.
        """
        for record, count in zip(records, rows or itertools.repeat(1), strict=False):
            if self._writer is None:
                self._open()
            self._write(record)
            self._rows += count
            self._bytes += len(record) + _FRAMING_BYTES
            if self._bytes >= self._shard_bytes:
                self._close_shard()

    def close(self) -> tuple[ShardInfo, ...]:
        """Closes the last shard.

        Returns:
          All shards in the order written; none when there were no rows.
        """
        if self._writer is not None:
            self._close_shard()
        return tuple(self._shards)

    def discard(self) -> None:
        """Removes everything written."""
        for shard in self.close():
            os.remove(shard.path)
        self._shards = []

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, error_type, error, traceback) -> None:
        if error_type is None:
            self.close()
        else:
            self.discard()

    def _open(self) -> None:
        # Imported here because it takes seconds, and planning needs no TensorFlow.
        from pipeline.compat import tf

        name = f"{TEMPORARY_PREFIX}{self._split}-{uuid.uuid4().hex}{_SUFFIX}"
        self._path = os.path.join(self._directory, name)
        self._writer = tf.io.TFRecordWriter(self._path)
        # Its own `write` only calls its base class, at a tenth of the whole cost.
        self._write = super(tf.io.TFRecordWriter, self._writer).write

    def _close_shard(self) -> None:
        writer, self._writer, self._write = self._writer, None, None
        writer.close()
        self._shards.append(
            ShardInfo(
                split=self._split,
                order_key=self._order_key,
                path=self._path,
                rows=self._rows,
                bytes=os.path.getsize(self._path),
                digest=files.digest_file(self._path),
                part=len(self._shards),
            )
        )
        self._rows = self._bytes = 0


def finalize(
    directory: str, shards: Iterable[ShardInfo], suffix: str = _SUFFIX
) -> tuple[ShardInfo, ...]:
    """Gives the shards their names, SPLIT-00000-of-00008.tfrecord, and clears up.

    Call once, when nobody writes any more: temporary shards that are not among
    `shards`, such as those of a worker that died, are removed.

    Args:
      directory: Where the shards stay.
      shards: The shards that count, of all splits, in any order.
      suffix: What their names end with.

    Returns:
      The shards in the order of their names.

    Raises:
      ValueError: Two shards have the same split, order key and part, so that
        their order would be left to chance, and rows probably stand twice.
    """
    ordered = sorted(shards, key=_place)
    for one, other in zip(ordered, ordered[1:], strict=False):
        if _place(one) == _place(other):
            raise ValueError(f"two shards at {_place(one)}: {one.path}, {other.path}")
    totals = collections.Counter(shard.split for shard in ordered)
    numbers: collections.Counter[str] = collections.Counter()
    named = []
    for shard in ordered:
        name = (
            f"{shard.split}-{numbers[shard.split]:05d}"
            f"-of-{totals[shard.split]:05d}{suffix}"
        )
        numbers[shard.split] += 1
        path = os.path.join(directory, name)
        os.rename(shard.path, path)
        named.append(dataclasses.replace(shard, path=path))
    for name in os.listdir(directory):
        if name.startswith(TEMPORARY_PREFIX) and name.endswith(suffix):
            os.remove(os.path.join(directory, name))
    return tuple(named)


def _place(shard: ShardInfo) -> tuple[str, str, int]:
    return shard.split, shard.order_key, shard.part
