"""A training as one static HTML page: metrics, curves, slices and data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import dataset as datasets
from pipeline import evaluations, event_scalars, files, pages, show_page
from pipeline import manifest as manifests
from pipeline.diagnostics.details import DETAILS_FILE
from pipeline.manifest import Manifest
from pipeline.types import UserError

FILE_NAME = "report.html"
_TRAINING = "training"
_MAX_CHARTS = 40
_MAX_POINTS = 400


def _facts(manifest: Manifest) -> Iterator[str]:
    results, settings = manifest.results, manifest.configuration
    facts = [
        ("model", settings.get("model", "")),
        ("step", f"{results['global_step']:,}"),
        ("training rows", f"{results['train_rows']:,}"),
        ("finished", manifest.finished),
    ]
    best = results.get("best")
    if best:
        facts.append(
            (
                "best checkpoint",
                f"step {best['global_step']:,}, {best['metric']}"
                f" {pages.number(best['value'])}",
            )
        )
    if results.get("stopped_early"):
        facts.append(("stopped early", results["stopped_early"]))
    yield pages.table(("training", ""), facts)
    hparams = settings.get("hparams", {})
    yield pages.table(
        ("hyper-parameter", ""),
        [(name, json.dumps(value)) for name, value in sorted(hparams.items())],
    )


def _metrics(trained: Manifest, evaluated: Manifest | None) -> Iterator[str]:
    splits = {"eval": trained.results["metrics"]}
    if evaluated is not None:
        splits[evaluated.configuration["split"]] = evaluated.results["metrics"]
    names = sorted({name for metrics in splits.values() for name in metrics})
    yield "<h2>Metrics</h2>"
    yield pages.table(
        ("metric", *(f"{split} split" for split in splits)),
        [
            (
                name,
                *(
                    pages.number(metrics[name]) if name in metrics else ""
                    for metrics in splits.values()
                ),
            )
            for name in names
        ],
    )


def _thinned(points: list) -> list:
    return points[:: -(-len(points) // _MAX_POINTS)]


def _curves(directory: str) -> Iterator[str]:
    """Yields training and eval split in one chart where they have the same tag."""
    training = event_scalars.read(directory)
    lines: dict[str, dict[str, list]] = {}
    for evaluation in evaluations.read(directory):
        for name, value in evaluation.metrics.items():
            points = lines.setdefault(name, {}).setdefault("eval split", [])
            points.append((evaluation.global_step, value))
    for tag, points in training.items():
        lines.setdefault(tag, {})[_TRAINING] = _thinned(points)
    yield '<h2>Curves</h2>\n<div class="charts">'
    order = sorted(lines, key=lambda tag: (tag != "loss", _TRAINING in lines[tag], tag))
    for tag in order[:_MAX_CHARTS]:
        yield pages.chart(tag, lines[tag], "step")
    yield "</div>"


def _confusion(details: Mapping[str, Any]) -> Iterator[str]:
    classes = details["classes"]
    yield "<h3>Confusion matrix</h3>"
    yield pages.table(
        ("true \\ predicted", *classes),
        [
            (name, *(f"{count:,.6g}" for count in row))
            for name, row in zip(classes, details["confusion"], strict=True)
        ],
    )


def _slices(details: Mapping[str, Any]) -> Iterator[str]:
    names = list(details["slices"][0]["metrics"])
    yield "<h3>Slices</h3>"
    yield pages.table(
        ("column", "value", "rows", *names),
        [
            (
                part["column"],
                part["value"],
                f"{part['rows']:,}",
                *(
                    ""
                    if part["metrics"][name] is None
                    else f"{part['metrics'][name]:.6g}"
                    for name in names
                ),
            )
            for part in details["slices"]
        ],
    )
    for column, count in details["slices_left_out"].items():
        if count:
            yield (
                f"<p>{pages.text(column)}: {count:,} more values, with too few rows or"
                " beyond the 50 most frequent ones</p>"
            )


def _details(details: Mapping[str, Any]) -> Iterator[str]:
    unit = (0.0, 1.0)
    yield (
        f"<h2>{pages.text(details['split'])} split, step {details['global_step']:,},"
        f" {details['rows']:,} rows</h2>"
    )
    yield '<div class="charts">'
    if "roc" in details:
        yield pages.chart(
            "ROC: true positive rate",
            {"": details["roc"]},
            "false positive rate",
            unit,
        )
        yield pages.chart("Precision", {"": details["pr"]}, "recall", unit)
    if details.get("calibration"):
        points = [
            (part["mean_prediction"], part["mean_label"])
            for part in details["calibration"]
            if None not in part.values()
        ]
        ends = [points[0][0], points[-1][0]] if points else []
        lines = {"mean label": points, "ideal": [(end, end) for end in ends]}
        yield pages.chart("Calibration", lines, "mean prediction")
    yield "</div>"
    if "confusion" in details:
        yield from _confusion(details)
    if details["slices"]:
        yield from _slices(details)


def _dataset(trained: Manifest, directory: str | None) -> Iterator[str]:
    if directory is None or manifests.read(directory) is None:
        return
    found = datasets.open_dataset(directory)
    if found.manifest.fingerprint != trained.inputs.get("dataset"):
        return
    yield f"<h1>Dataset {pages.text(directory)}</h1>"
    yield from show_page.body(found)


def _body(
    trained: Manifest, model: str, evaluation: str, dataset: str | None
) -> Iterator[str]:
    yield from _facts(trained)
    evaluated = manifests.read(evaluation)
    if evaluated is not None and evaluated.stage != "evaluate":
        evaluated = None
    yield from _metrics(trained, evaluated)
    yield from _curves(model)
    path = os.path.join(evaluation, DETAILS_FILE)
    if evaluated is not None and os.path.exists(path):
        yield from _details(files.read_json(path))
    yield from _dataset(trained, dataset)


def render(
    model: str, evaluation: str | None = None, dataset: str | None = None
) -> str:
    """Returns the page about a model directory.

    Args:
      model: The model directory.
      evaluation: Directory of an evaluation of it, which may be missing; by default
        where `--work_dir` has it.
      dataset: The dataset's directory, likewise; shown if it is the one that the
        model was trained on.

    Raises:
      UserError: There is no finished training, or a file is damaged.
    """
    trained = manifests.read(model)
    if trained is None or trained.stage != "train":
        raise UserError(
            f"{model} holds no finished training (no {manifests.FILE_NAME})"
        )
    parent = os.path.dirname(model)
    evaluation = evaluation or os.path.join(parent, "evaluation")
    dataset = dataset or os.path.join(os.path.dirname(parent), "dataset")
    try:
        return pages.page(
            f"Model {model}", list(_body(trained, model, evaluation, dataset))
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(
            f"a file in {model} or {evaluation} is damaged ({type(error).__name__}:"
            f" {error})"
        ) from error
