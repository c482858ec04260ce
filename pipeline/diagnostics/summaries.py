"""An evaluation's details in TensorBoard: PR curves, slices, and plots as images."""

from __future__ import annotations

import re

from tensorboard.plugins.pr_curve import summary as pr_curve

from pipeline import event_files
from pipeline.compat import tf
from pipeline.diagnostics import measures
from pipeline.diagnostics.details import Details
from pipeline.diagnostics.slices import Sliced

_v1 = tf.compat.v1


def table(sliced: Sliced) -> str:
    """Returns the slices as a table in Markdown, as TensorBoard shows it."""
    names = list(sliced.slices[0].metrics)
    lines = [
        "| " + " | ".join(["column", "value", "rows", *names]) + " |",
        "|" + "---|" * (len(names) + 3),
    ]
    for part in sliced.slices:
        cells = [part.column, part.value, f"{part.rows:,}"]
        cells += [f"{part.metrics[name]:.6g}" for name in names]
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", shown)


def _pr_curve(counts: measures.Counts) -> _v1.Summary:
    made = pr_curve.raw_data_pb(
        name="pr_curve",
        true_positive_counts=counts.true_positives,
        false_positive_counts=counts.false_positives,
        true_negative_counts=counts.true_negatives,
        false_negative_counts=counts.false_negatives,
        precision=counts.precision(),
        recall=counts.recall(),
        num_thresholds=measures.THRESHOLDS,
    )
    return _v1.Summary.FromString(made.SerializeToString())


def _scalars(sliced: Sliced) -> _v1.Summary:
    return _v1.Summary(
        value=[
            _v1.Summary.Value(
                tag=f"slices/{part.column}={part.value}/{name}", simple_value=value
            )
            for part in sliced.slices
            for name, value in part.metrics.items()
        ]
    )


def write(
    directory: str, details: Details, step: int, images: dict[str, bytes]
) -> None:
    """Writes the details into the run of an evaluation.

    Args:
      directory: The run, in which the Estimator's own metrics are.
      details: What to write.
      step: Global step of what was evaluated.
      images: PNG files by tag.
    """
    writer = event_files.open_writer(directory, ".details")
    if details.counts is not None:
        writer.add_summary(_pr_curve(details.counts), step)
    if details.sliced.slices:
        text = event_files.text_value("slices", table(details.sliced))
        writer.add_summary(_v1.Summary(value=[text]), step)
        writer.add_summary(_scalars(details.sliced), step)
    for tag, png in images.items():
        image = _v1.Summary.Image(encoded_image_string=png, colorspace=3)
        value = _v1.Summary.Value(tag=tag, image=image)
        writer.add_summary(_v1.Summary(value=[value]), step)
    writer.close()
