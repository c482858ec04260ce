"""Which pieces of the raw files are read by whom, if several workers read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pipeline.preprocess.sources.base import WHOLE, FilePiece, Source

_MIN_PIECE_BYTES = 8 << 20
_MAX_PIECE_BYTES = 64 << 20
_PIECES_PER_WORKER = 2

Place = tuple[int, int]
"""Where rows stand in the input: number of the file, number of the piece in it."""


def order_key(place: Place) -> str:
    """Returns text that sorts like the places themselves."""
    return "{:08d}-{:08d}".format(*place)


def pieces(
    sources: Sequence[Source],
    workers: int | None,
    piece_bytes: int | None = None,
) -> list[tuple[int, Source, FilePiece]]:
    """Cuts files into pieces if there are several workers.

    Args:
      sources: The files.
      workers: How many there are; None where that is not known.
      piece_bytes: Size of a piece; None lets it follow from the workers.

    Returns:
      Number of the file, the file, and the piece; in the order of the data.
    """
    if piece_bytes is None:
        if workers == 1:
            return [(index, source, WHOLE) for index, source in enumerate(sources)]
        piece_bytes = _MAX_PIECE_BYTES
        if workers is not None:
            total = sum(os.path.getsize(source.path) for source in sources)
            share = total // (_PIECES_PER_WORKER * workers)
            piece_bytes = min(max(share, _MIN_PIECE_BYTES), _MAX_PIECE_BYTES)
    return [
        (index, source, piece)
        for index, source in enumerate(sources)
        for piece in source.pieces(piece_bytes)
    ]
