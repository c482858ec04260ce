"""Which rows a worker reads, where several train on the same data.

A worker's share is fixed before anything is shuffled, so it depends on neither seed
nor epoch: the shares of all workers are the rows, each once.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence

from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class Shard:
    """One of several workers, each of which reads a part of the rows.

    Attributes:
      workers: Number of workers.
      index: This worker, from 0.
    """

    workers: int = 1
    index: int = 0

    def __post_init__(self):
        if not 0 <= self.index < self.workers:
            raise ValueError(f"no worker {self.index} among {self.workers}, from 0")


@dataclasses.dataclass(frozen=True)
class Share:
    """The rows of one worker.

    Attributes:
      parts: Numbers of the parts (files) that it reads.
      first: By number of a part, the first row that it takes; for all parts.
      stride: It takes every so many-th row from there.
      rows: How many rows these are.
    """

    parts: tuple[int, ...]
    first: tuple[int, ...]
    stride: int
    rows: int


def whole_share(parts: int, rows: int) -> Share:
    """Returns the share of the only worker."""
    return Share(tuple(range(parts)), (0,) * parts, 1, rows)


def share_of(names: Sequence[str], part_rows: Sequence[int], shard: Shard) -> Share:
    """Divides parts among workers: whole ones where there are enough, else rows.

    Args:
      names: Of the parts. Only their order by base name counts, not the order in
        which they are listed.
      part_rows: Rows of each part.
      shard: The worker.

    Raises:
      UserError: There are fewer rows than workers.
    """
    workers, index = shard.workers, shard.index
    total = sum(part_rows)
    if workers == 1:
        return whole_share(len(names), total)
    if total < workers:
        raise UserError(
            f"{total:,} training rows cannot be divided among {workers} workers:"
            " give more rows or fewer workers"
        )
    ordered = sorted(
        range(len(names)), key=lambda part: (os.path.basename(names[part]), names[part])
    )
    by_worker = [ordered[worker::workers] for worker in range(workers)]
    if all(sum(part_rows[part] for part in parts) for parts in by_worker):
        parts = tuple(by_worker[index])
        rows = sum(part_rows[part] for part in parts)
        return Share(parts, (0,) * len(names), 1, rows)
    sizes = [part_rows[part] for part in ordered]
    first = [0] * len(names)
    for part, before in zip(
        ordered, itertools.accumulate(sizes, initial=0), strict=False
    ):
        first[part] = (index - before) % workers
    return Share(
        tuple(range(len(names))),
        tuple(first),
        workers,
        len(range(index, total, workers)),
    )
