"""What the quality part of the benchmarks computes and says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks import quality, quality_run
from benchmarks.quality import Score


@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_roc_auc_is_the_share_of_pairs_in_order(distinct):
    random = np.random.default_rng(distinct)
    scores = random.integers(0, distinct, 60) / distinct
    truth = random.random(60) < 0.3
    pairs = list(itertools.product(scores[truth], scores[~truth]))
    wanted = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
    assert quality_run.roc_auc(truth, scores) == pytest.approx(wanted, abs=1e-12)


def _scores(**aucs: float) -> dict[str, list[Score]]:
    return {name: [Score(auc, 0.4, 1.0)] for name, auc in aucs.items()}


_TASK = quality.Task(
    "a task",
    "x.flags",
    {"good": "", "fair": "", "baseline": ""},
    {"LightGBM": "a,b", "other": "a"},
    0.01,
    0.2,
)


def test_what_is_met():
    found = _scores(LightGBM=0.9, other=0.8, good=0.895, fair=0.72, baseline=0.5)
    assert quality.verdicts(_TASK, found) == [
        "good - LightGBM: -0.0050; wanted -0.01 or more: met",
        "good - other: +0.0950",
        "every model - baseline: +0.2 or more: met",
    ]


def test_what_is_missed():
    found = _scores(LightGBM=0.9, other=0.8, good=0.88, fair=0.6, baseline=0.5)
    assert quality.verdicts(_TASK, found) == [
        "good - LightGBM: -0.0200; wanted -0.01 or more: MISSED",
        "good - other: +0.0800",
        "fair - baseline: +0.1000; wanted +0.2 or more: MISSED",
    ]


def test_the_tasks_name_models_and_files_that_are_there():
    from model_fns import hparams, registry

    for task in (quality.CENSUS, quality.FLIGHTS):
        with open(f"{quality.measure.ROOT}/{task.flagfile}", encoding="utf-8") as f:
            assert "--features=" in f.read()
        for name, text in task.models.items():
            hparams.parse(text, registry.find(name).hparams)
