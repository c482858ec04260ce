"""Plots of an evaluation as PNG images, for TensorBoard's image dashboard."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.types import UserError

_SIZE = (5.0, 4.0)


def check() -> None:
    """Checks that plots can be drawn.

    Raises:
      UserError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "--plots needs matplotlib: pip install 'estimator-pipeline[plots]'; the"
            " report page has the same curves without it"
        )


def _png(figure) -> bytes:
    out = io.BytesIO()
    figure.tight_layout()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


def _curve(points: list, x: str, y: str) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(_SIZE)
    axes = figure.subplots()
    values = np.array(points)
    axes.plot(values[:, 0], values[:, 1])
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1.02))
    return _png(figure)


def _calibration(bins: list[dict]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(_SIZE)
    axes = figure.subplots()
    there = [b for b in bins if None not in b.values()]
    predicted = [b["mean_prediction"] for b in there]
    labels = [b["mean_label"] for b in there]
    ends = [min([*predicted, *labels]), max([*predicted, *labels])]
    axes.plot(ends, ends, ":", color="grey")
    axes.plot(predicted, labels, "o-")
    axes.set(xlabel="mean prediction", ylabel="mean label")
    return _png(figure)


def _confusion(matrix: list, classes: list[str]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(_SIZE)
    axes = figure.subplots()
    values = np.array(matrix)
    shares = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12)
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    places = range(len(classes))
    # Names are data: matplotlib would read a dollar sign as mathematics.
    names = [name.replace("$", r"\$")[:20] for name in classes]
    axes.set_xticks(places, names, rotation=90)
    axes.set_yticks(places, names)
    axes.set(xlabel="predicted", ylabel="true")
    return _png(figure)


def draw(details: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns PNG images by tag.

    Args:
      details: The content of details.json.
    """
    found = {}
    if "roc" in details:
        found["roc"] = _curve(
            details["roc"], "false positive rate", "true positive rate"
        )
    if details.get("calibration"):
        found["calibration"] = _calibration(details["calibration"])
    if "confusion" in details:
        found["confusion"] = _confusion(details["confusion"], details["classes"])
    return found
