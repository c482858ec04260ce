"""The nights in TensorBoard: metrics of candidate and champion, and a table."""

from __future__ import annotations

import calendar
import datetime
import time
from collections.abc import Sequence

from pipeline import event_files
from pipeline.compat import tf
from pipeline.retraining.lineage import Run
from pipeline.retraining.outcome import Outcome

_EPOCH = datetime.date(1970, 1, 1)


def write(directory: str, outcome: Outcome, runs: Sequence[Run]) -> None:
    """Writes a night's points, and the table of the last nights.

    The step is the number of days since 1970 and the wall time is the date's, so that
    nights that were made up for stand at their own place.

    Args:
      directory: Event files are written below it: candidate/, champion/, nights/.
      outcome: The night.
      runs: The last nights, this one among them.
    """
    date = datetime.date.fromisoformat(outcome.run_date)
    step = (date - _EPOCH).days
    wall = float(calendar.timegm(date.timetuple()))
    for who, metrics in (
        ("candidate", outcome.metrics),
        ("champion", outcome.champion_metrics),
    ):
        values = [
            tf.compat.v1.Summary.Value(tag=f"test_days/{name}", simple_value=value)
            for name, value in sorted(metrics.items())
        ]
        if values:
            _add(f"{directory}/{who}", values, step, wall)
    _add(
        f"{directory}/nights",
        [event_files.text_value("nights", table(runs))],
        step,
        wall,
    )


def table(runs: Sequence[Run]) -> str:
    """Returns the nights as a table in Markdown, as TensorBoard shows it."""
    lines = ["| date | outcome | champion before | why |", "|---|---|---|---|"]
    for run in runs:
        why = run.message.replace("|", "\\|")
        lines.append(
            f"| {run.run_date} | {run.outcome} | {run.champion or '-'} | {why} |"
        )
    return "\n".join(lines)


def _add(directory: str, values: list, step: int, wall: float) -> None:
    # Through a writer of events, since tf.summary takes no wall time of one's own.
    path = f"{directory}/events.out.tfevents.{time.time_ns()}"
    tf.io.gfile.makedirs(directory)
    with tf.io.TFRecordWriter(path) as writer:
        version = tf.compat.v1.Event(wall_time=wall, file_version="brain.Event:2")
        writer.write(version.SerializeToString())
        summary = tf.compat.v1.Summary(value=values)
        event = tf.compat.v1.Event(wall_time=wall, step=step, summary=summary)
        writer.write(event.SerializeToString())
