"""The event files of a directory: their names, writers of our own, texts in them."""

from __future__ import annotations

import glob
import os
import time

from pipeline.compat import tf

_v1 = tf.compat.v1
_POLL_SECONDS = 0.02


def wait_for_a_new_name(*directories: str, suffix: str = "") -> None:
    """Waits until a new event file would not take the name of one that is there.

    TensorFlow names event files by the second and the host, and empties one that
    already has this name; a training that goes on in the process within the second
    in which another one wrote would lose what that one wrote.

    Args:
      directories: Where event files will be written; they need not exist.
      suffix: The end of their names.
    """
    while any(
        _written_in(directory, int(time.time()), suffix) for directory in directories
    ):
        time.sleep(_POLL_SECONDS)


def _written_in(directory: str, second: int, suffix: str) -> bool:
    name = f"events.out.tfevents.{second:010}.*{glob.escape(suffix)}"
    return bool(glob.glob(os.path.join(glob.escape(directory), name)))


def open_writer(directory: str, suffix: str) -> _v1.summary.FileWriter:
    """Returns a writer of a new event file, beside those of Estimators.

    Args:
      directory: A run.
      suffix: The end of the file's name.
    """
    wait_for_a_new_name(directory, suffix=suffix)
    # Writers refuse to be made outside of a graph.
    with tf.Graph().as_default():
        return _v1.summary.FileWriter(directory, filename_suffix=suffix)


def text_value(tag: str, text: str) -> _v1.Summary.Value:
    """Returns a text in Markdown, as TensorBoard's plugin for texts shows it."""
    metadata = _v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    tensor = tf.make_tensor_proto([text.encode()], dtype=tf.string)
    return _v1.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
