"""Reads the scalars of a run's event files as TensorBoard shows them, without it.

Imports no TensorFlow.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from tensorboard.compat.proto import event_pb2

_HEADER = struct.Struct("<QI")
_CRC_BYTES = 4
# Graphs and profiles are far larger than any point of a curve.
_LONGEST = 1 << 20

Curves = dict[str, list[tuple[int, float]]]


def _records(path: str) -> Iterator[bytes]:
    """Yields the short records of a file that may still be written."""
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        while len(header := f.read(_HEADER.size)) == _HEADER.size:
            length = _HEADER.unpack(header)[0]
            if f.tell() + length + _CRC_BYTES > size:
                return
            if length > _LONGEST:
                f.seek(length + _CRC_BYTES, os.SEEK_CUR)
                continue
            yield f.read(length)
            f.seek(_CRC_BYTES, os.SEEK_CUR)


def _files(directory: str) -> list[str]:
    if not os.path.isdir(directory):
        return []
    names = sorted(name for name in os.listdir(directory) if "tfevents" in name)
    return [os.path.join(directory, name) for name in names]


def read(directory: str) -> Curves:
    """Returns the points (step, value) of each tag, in the order of their steps.

    The start of a session at a step takes back what was written at that step and
    beyond, as in TensorBoard; of points at one step the last one counts. Values that
    are no numbers are left out.
    """
    found: dict[str, dict[int, float]] = {}
    for path in _files(directory):
        for record in _records(path):
            event = event_pb2.Event.FromString(record)
            if event.session_log.status == event_pb2.SessionLog.START:
                found = {
                    tag: {step: v for step, v in points.items() if step < event.step}
                    for tag, points in found.items()
                }
            for value in event.summary.value:
                if value.WhichOneof("value") == "simple_value":
                    points = found.setdefault(value.tag, {})
                    points[event.step] = value.simple_value
    return {tag: sorted(points.items()) for tag, points in found.items() if points}
