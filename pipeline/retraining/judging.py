"""From candidate and champion to the evidence on which a verdict rests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline import metric_order
from pipeline.dataset import Dataset
from pipeline.flags.blessing import BlessingFlags
from pipeline.retraining import bootstrap, predictions, scores
from pipeline.retraining.scores import Metric, Truth
from pipeline.retraining.verdict import Evidence, Serving, Slice
from pipeline.retraining.window import JUDGED


def gather(
    dataset: Dataset,
    candidate_dir: str,
    champion_dir: str | None,
    serving: Serving,
    flags: BlessingFlags,
) -> Evidence:
    """Judges both models on the same rows.

    Args:
      dataset: Its test split has the rows.
      candidate_dir: The exported candidate.
      champion_dir: The version of the champion, or None.
      serving: What the check of the export found.
      flags: Which metric, slices and bootstrap.

    Raises:
      UserError: A model does not fit the data.
    """
    models = [predictions.load(d) for d in (candidate_dir, champion_dir) if d]
    for model in models:
        predictions.check_label(dataset, model)
    truth, found = predictions.of_split(dataset, JUDGED, models, flags.slices)
    order = metric_order.order(flags.metric, None, "bless_metric")
    finite = np.isfinite(found[0]).reshape(len(truth.labels), -1).all(axis=1)
    interval, slices = None, ()
    if len(found) > 1 and finite.all():
        metrics = [Metric(flags.metric, truth, one) for one in found]
        smaller = order.mode == "min"
        interval = bootstrap.interval(
            *metrics,
            truth.weights,
            smaller,
            flags.confidence,
            flags.samples,
            flags.seed,
        )
        slices = tuple(_slices(truth, *metrics, -1.0 if smaller else 1.0))
    elif len(found) > 1:
        never = float("nan")
        interval = bootstrap.Interval(never, never, never)
    return Evidence(
        rows=len(truth.labels),
        order=order,
        candidate=scores.evaluate(truth, found[0]),
        champion=scores.evaluate(truth, found[1]) if len(found) > 1 else None,
        baseline=scores.evaluate(truth, scores.constant(truth)),
        interval=interval,
        slices=slices,
        not_finite=int(np.sum(~finite)),
        spread=_spread(found[0][finite]),
        miscalibration=scores.miscalibration(truth, found[0]),
        serving=serving,
    )


def _spread(found: np.ndarray) -> float:
    return float(np.ptp(found, axis=0).max()) if len(found) else 0.0


def _slices(
    truth: Truth, candidate: Metric, champion: Metric, sign: float
) -> Iterator[Slice]:
    for column, values in truth.slices.items():
        for value in np.unique(values):
            there = values == value
            weights = truth.weights * there
            difference = candidate.value(weights) - champion.value(weights)
            yield Slice(column, str(value), int(there.sum()), float(sign * difference))
