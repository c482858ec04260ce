"""The versions of a model that a server has loaded; new ones take over by themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from export import signature_defs, versions
from pipeline.compat import tf
from pipeline.types import UserError

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, eq=False)
class Version:
    """A loaded version.

    Attributes:
      number: Its number.
      signatures: Name to function.
      kinds: Name to what it takes, as `signature_defs.kind` says.
      metadata: The SignatureDefs as the REST API writes them.
      model: What keeps the variables alive.
      hold: What keeps the directory.
    """

    number: int
    signatures: Mapping[str, Any]
    kinds: Mapping[str, str]
    metadata: Mapping[str, Any]
    model: Any
    hold: versions.Hold


def _warm_up(signatures: Mapping[str, Any]) -> None:
    """Calls each signature with no rows.

    TensorFlow optimises a graph at its first call, which takes half a second and would
    be a request's. A model that refuses no rows has done that before it refuses.
    """
    for signature in signatures.values():
        specs = signature.structured_input_signature[1]
        empty = {
            name: tf.zeros([size or 0 for size in spec.shape], spec.dtype)
            for name, spec in specs.items()
            if spec.shape.rank is not None
        }
        with contextlib.suppress(tf.errors.OpError, TypeError, ValueError):
            signature(**empty)


def load(export_dir: str, number: int) -> Version:
    """Loads a version and makes it ready for requests.

    Raises:
      UserError: It cannot be loaded.
    """
    directory = versions.path(export_dir, number)
    hold = versions.Hold(directory)
    try:
        model = tf.saved_model.load(directory)
        _warm_up(model.signatures)
        described = signature_defs.read(directory)
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:
        raise UserError(f"{directory} cannot be loaded ({error})") from error
    return Version(
        number,
        dict(model.signatures),
        {name: signature_defs.kind(value) for name, value in described.items()},
        {
            name: json_format.MessageToDict(value, preserving_proto_field_name=True)
            for name, value in described.items()
        },
        model,
        hold,
    )


class Store:
    """The newest version of an export directory, kept current.

    A request takes the version once and keeps it, so a version that was replaced lives
    until its last request is answered. One that cannot be loaded leaves the one before
    in its place and is not tried again.

    Args:
      export_dir: The numbered versions.
      only: Serve this version whatever else appears.

    Raises:
      UserError: There is none, or it cannot be loaded.
    """

    def __init__(self, export_dir: str, only: int | None = None):
        self._export_dir = export_dir
        self._only = only
        self._failed: dict[int, str] = {}
        versions.find(export_dir, only)
        number = only if only is not None else versions.versions(export_dir)[-1]
        self._current = load(export_dir, number)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def current(self) -> Version:
        """The version that new requests get."""
        return self._current

    @property
    def failed(self) -> dict[int, str]:
        """Number to reason of the versions that could not be loaded."""
        return dict(self._failed)

    def refresh(self) -> None:
        """Loads the newest version if it is another one. Not for two threads at once."""
        if self._only is not None:
            return
        there = [
            v for v in versions.versions(self._export_dir) if v not in self._failed
        ]
        if not there or there[-1] == self._current.number:
            return
        try:
            self._current = load(self._export_dir, there[-1])
            _log.info("serving version %d", there[-1])
        except UserError as error:
            self._failed[there[-1]] = str(error)
            _log.error("version %d stays out: %s", there[-1], error)

    def watch(self, seconds: float) -> None:
        """Refreshes in a thread, so often, until `close`."""

        def run() -> None:
            while not self._stop.wait(seconds):
                self.refresh()

        self._thread = threading.Thread(target=run, daemon=True, name="versions")
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
