"""Which pieces of the raw files are read by whom, if several workers read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pipeline.preprocess.sources.base import WHOLE, FilePiece, Source

_MIN_PIECE_BYTES = 8 << 20
_MAX_PIECE_BYTES = 64 << 20
_PIECES_PER_WORKER = 2
# What Beam's local runners call it.
_WORKERS = "--direct_num_workers"


def workers(beam_options: Sequence[str]) -> int | None:
    """Returns the number of workers asked for; None if another runner decides it."""
    if any(option.startswith("--runner") for option in beam_options):
        return None
    count = 1
    for option in beam_options:
        name, _, value = option.partition("=")
        if name == _WORKERS and value.isdigit():
            count = int(value) or os.cpu_count() or 1  # 0 means one for each core.
    return count


def pieces(
    sources: Sequence[Source],
    beam_options: Sequence[str],
    piece_bytes: int | None = None,
) -> list[tuple[int, Source, FilePiece]]:
    """Cuts files into pieces if there are several workers.

    Args:
      sources: The files.
      beam_options: Options of Beam, which say how many workers there are.
      piece_bytes: Size of a piece; None lets it follow from the workers.

    Returns:
      Number of the file, the file, and the piece; in the order of the data.
    """
    if piece_bytes is None:
        count = workers(beam_options)
        if count == 1:
            return [(index, source, WHOLE) for index, source in enumerate(sources)]
        piece_bytes = _MAX_PIECE_BYTES
        if count is not None:
            total = sum(os.path.getsize(source.path) for source in sources)
            share = total // (_PIECES_PER_WORKER * count)
            piece_bytes = min(max(share, _MIN_PIECE_BYTES), _MAX_PIECE_BYTES)
    return [
        (index, source, piece)
        for index, source in enumerate(sources)
        for piece in source.pieces(piece_bytes)
    ]
