"""Metrics against their definitions, and the bootstrap against what it must be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.retraining import bootstrap, scores
from pipeline.retraining.scores import Metric, Truth
from pipeline.types import Task, UserError


def binary(labels, weights=None) -> Truth:
    labels = np.array(labels, np.int64)
    weights = np.ones(len(labels)) if weights is None else np.array(weights, float)
    return Truth(Task.BINARY, labels, weights)


def two(probabilities) -> np.ndarray:
    positive = np.array(probabilities, float)
    return np.stack([1 - positive, positive], axis=1)


def slow_auc(truth: Truth, positive) -> float:
    """Pairs in the right order, one by one."""
    won = total = 0.0
    for i, j in itertools.product(range(len(positive)), repeat=2):
        if truth.labels[i] == 1 and truth.labels[j] == 0:
            pair = truth.weights[i] * truth.weights[j]
            total += pair
            won += pair * (
                (positive[i] > positive[j]) + (positive[i] == positive[j]) / 2
            )
    return won / total


ROWS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.integers(0, 3)
    ),
    min_size=2,
    max_size=12,
)


@given(ROWS)
def test_auc_is_the_share_of_pairs(rows):
    labels, positive, weights = zip(*rows, strict=True)
    truth = binary(labels, weights)
    found = Metric("auc", truth, two(positive)).value(truth.weights)
    mass = [sum(w for y, _, w in rows if y == c) for c in (0, 1)]
    if 0 in mass:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(slow_auc(truth, positive))


@given(ROWS, st.sampled_from(["auc", "accuracy", "average_loss"]))
def test_a_weight_is_a_repetition(rows, name):
    """What the bootstrap relies on: drawing a row twice is giving it twice its weight."""
    labels, positive, weights = zip(*rows, strict=True)
    weighted = Metric(name, binary(labels), two(positive)).value(
        np.array(weights, float)
    )
    repeated = np.repeat(np.arange(len(rows)), weights)
    if not len(repeated):
        assert np.isnan(weighted)
        return
    truth = binary(np.array(labels)[repeated])
    plain = Metric(name, truth, two(np.array(positive)[repeated])).value(truth.weights)
    assert weighted == pytest.approx(plain, nan_ok=True)


def test_metrics_by_hand():
    truth = binary([0, 1, 1, 0])
    found = scores.evaluate(truth, two([0.2, 0.8, 0.4, 0.4]))
    assert found["accuracy"] == pytest.approx(0.75)
    assert found["auc"] == pytest.approx((1 + 1 + 1 + 0.5) / 4)
    losses = -np.log([0.8, 0.8, 0.4, 0.6])
    assert found["average_loss"] == pytest.approx(losses.mean())
    numbers = Truth(Task.REGRESSION, np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    found = scores.evaluate(numbers, np.array([2.0, 1.0]))
    assert found == pytest.approx(
        {"average_loss": 3.25, "rmse": 3.25**0.5, "mae": 1.75}
    )


def test_the_best_constant():
    truth = binary([0, 0, 0, 1])
    found = scores.evaluate(truth, scores.constant(truth))
    assert found["auc"] == 0.5
    assert found["accuracy"] == 0.75
    best = min(
        scores.evaluate(truth, two([p] * 4))["average_loss"]
        for p in np.linspace(0.01, 0.99, 99)
    )
    assert found["average_loss"] <= best


def test_miscalibration():
    truth = binary([0, 1, 1, 1])
    assert scores.miscalibration(truth, two([0.75] * 4)) == pytest.approx(0)
    assert scores.miscalibration(truth, two([0.25] * 4)) == pytest.approx(0.5)
    numbers = Truth(Task.REGRESSION, np.array([0.0, 2.0]), np.ones(2))
    assert scores.miscalibration(numbers, np.array([2.0, 2.0])) == pytest.approx(1)


def test_tasks_that_are_not_judged():
    with pytest.raises(UserError, match="one label"):
        scores.names(Task.MULTI_LABEL)


def made(rows: int, seed: int, noise: float) -> tuple[Truth, np.ndarray]:
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, rows)
    signal = labels + noise * draw.normal(size=rows)
    return binary(labels), two(1 / (1 + np.exp(-2 * (signal - 0.5))))


def interval(truth, candidate, champion, name="auc", seed=1, **changes):
    how = {"confidence": 0.95, "samples": 60, "seed": seed, **changes}
    metrics = (Metric(name, truth, p) for p in (candidate, champion))
    smaller = name == "average_loss"
    return bootstrap.interval(*metrics, truth.weights, smaller, **how)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["auc", "average_loss", "accuracy"]))
def test_the_bootstrap_is_a_function_of_its_seed(seed, name):
    truth, good = made(200, 3, 0.5)
    bad = made(200, 4, 5.0)[1]
    first = interval(truth, good, bad, name, seed)
    assert first == interval(truth, good, bad, name, seed)
    assert first.low <= first.high
    assert first != interval(truth, good, bad, name, seed + 1)
    # The other way round it is the mirror image.
    mirrored = interval(truth, bad, good, name, seed)
    assert mirrored.difference == pytest.approx(-first.difference)
    assert (mirrored.low, mirrored.high) == pytest.approx((-first.high, -first.low))


def test_the_interval_tells_better_from_alike():
    truth, good = made(2000, 3, 0.5)
    bad = two(np.random.default_rng(5).random(2000))
    assert interval(truth, good, bad).low > 0
    assert interval(truth, bad, good).high < 0
    alike = interval(truth, good, good)
    assert (alike.difference, alike.low, alike.high) == (0, 0, 0)
    wide = interval(truth, good, bad, confidence=0.99)
    narrow = interval(truth, good, bad, confidence=0.5)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_an_interval_covers_what_it_should():
    """Of a difference that is 0 in truth, a 90 % interval holds 0 in most tries."""
    covered = 0
    for seed in range(40):
        truth, one = made(300, seed, 1.0)
        other = made(300, seed + 10_000, 1.0)[1]
        draw = np.random.default_rng(seed)
        signal = truth.labels + draw.normal(size=300)
        other = two(1 / (1 + np.exp(-2 * (signal - 0.5))))
        found = interval(truth, one, other, confidence=0.9, seed=seed)
        covered += found.low <= 0 <= found.high
    assert covered >= 30


def test_a_drawing_without_one_of_the_classes_is_left_out():
    truth = binary([1] + [0] * 20)
    found = interval(truth, two([0.9] + [0.1] * 20), two([0.5] * 21))
    assert np.isfinite([found.low, found.high]).all()
