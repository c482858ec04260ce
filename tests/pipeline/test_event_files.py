"""Names of event files: none is taken twice."""

from __future__ import annotations

from pathlib import Path

import helpers_training
import pytest

from pipeline import event_files, saving_hooks
from pipeline.compat import tf


def _write(directory: Path, step: int) -> None:
    saving_hooks.mark_start(str(directory), step)
    tf.compat.v1.summary.FileWriterCache.clear()


@pytest.mark.parametrize("name", ["plain", "with [brackets] *"])
def test_writers_after_another_keep_what_the_others_wrote(tmp_path, name):
    directory = tmp_path / name
    for step in range(3):
        event_files.wait_for_a_new_name(str(directory))
        _write(directory, step)
    steps = [
        event.step
        for event in helpers_training.events(directory)
        if event.HasField("session_log")
    ]
    assert steps == [1, 2, 3]


def test_writers_with_a_suffix_keep_what_others_of_it_wrote(tmp_path):
    for step in (1, 2, 3):
        writer = event_files.open_writer(str(tmp_path), ".details")
        value = event_files.text_value("notes", f"step {step}")
        writer.add_summary(tf.compat.v1.Summary(value=[value]), step)
        writer.close()
    events = helpers_training.events(tmp_path)
    assert [event.step for event in events if event.summary.value] == [1, 2, 3]
