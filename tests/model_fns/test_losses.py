"""Losses through heads, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_records import column, declare

from model_fns import heads, hparams
from pipeline.compat import tf
from pipeline.types import Distribution, Label, Labels, Numeric, UserError

_WEIGHTS = np.float32([0.5, 2, 1, 0])


def _loss(label, labels, logits, weight=None, **settings) -> float:
    columns = [column("x", "float"), column("w", "float")]
    declaration = declare(columns, [Numeric("x", "x")], label, weight)
    head = heads.head(declaration, hparams.Objective(**settings))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loss = head.loss(
            tf.nest.map_structure(tf.constant, labels),
            tf.constant(logits, tf.float32),
            features={"w": tf.constant(_WEIGHTS)},
            mode="train",
        )
        session.run(tf.compat.v1.tables_initializer())
        return float(session.run(loss))


def _sigmoid(z):
    return 1 / (1 + np.exp(-np.array(z, float)))


_Z = np.array([2.0, -1.0, 0.5, -3.0])
_YES = np.array([1, 0, 0, 1])
_Q = np.where(_YES == 1, _sigmoid(_Z), _sigmoid(-_Z))
_BINARY = Label("y", ("no", "yes"))
_NAMES = ["yes", "no", "no", "yes"]


def _smoothed(share):
    y = _YES * (1 - share) + share / 2
    return -(y * np.log(_sigmoid(_Z)) + (1 - y) * np.log(_sigmoid(-_Z)))


_OF_TWO = {
    "default": ({}, -np.log(_Q)),
    "focal": ({"loss": "focal"}, -((1 - _Q) ** 2) * np.log(_Q)),
    "focal 0": ({"loss": "focal", "focal_gamma": 0.0}, -np.log(_Q)),
    "smoothed": ({"loss": "smoothed", "smoothing": 0.2}, _smoothed(0.2)),
    "weights": (
        {"class_weights": (0.5, 3.0)},
        -np.where(_YES == 1, 3, 0.5) * np.log(_Q),
    ),
    "focal, weights": (
        {"loss": "focal", "class_weights": (0.0, 1.0)},
        -_YES * (1 - _Q) ** 2 * np.log(_Q),
    ),
}


@pytest.mark.parametrize(("settings", "losses"), _OF_TWO.values(), ids=_OF_TWO)
def test_two_classes(settings, losses):
    found = _loss(_BINARY, _NAMES, _Z[:, None], **settings)
    assert found == pytest.approx(losses.mean(), rel=1e-5)
    weighted = _loss(_BINARY, _NAMES, _Z[:, None], "w", **settings)
    assert weighted == pytest.approx((losses * _WEIGHTS).mean(), rel=1e-5)


_MANY_Z = np.array([[1.0, 2, -1], [0, 0, 3], [2, 1, 0], [-1, 0, 1]])
_MANY = Label("y", ("a", "b", "c"))
_IDS = np.array([1, 0, 0, 2])
_LOG_Q = _MANY_Z - np.log(np.exp(_MANY_Z).sum(axis=1, keepdims=True))
_OWN = _LOG_Q[np.arange(4), _IDS]
_OF_MANY = {
    "default": ({}, -_OWN),
    "focal": (
        {"loss": "focal", "focal_gamma": 1.5},
        -((1 - np.exp(_OWN)) ** 1.5) * _OWN,
    ),
    "smoothed": (
        {"loss": "smoothed", "smoothing": 0.3},
        -0.7 * _OWN - 0.3 * _LOG_Q.mean(axis=1),
    ),
    "weights": (
        {"class_weights": (1.0, 2.0, 5.0)},
        -np.array([1, 2, 5])[_IDS] * _OWN,
    ),
}


@pytest.mark.parametrize(("settings", "losses"), _OF_MANY.values(), ids=_OF_MANY)
def test_many_classes(settings, losses):
    names = ["abc"[i] for i in _IDS]
    found = _loss(_MANY, names, _MANY_Z, **settings)
    assert found == pytest.approx(losses.mean(), rel=1e-5)


def test_several_classes_a_row():
    label = Label("y", ("a", "b", "c"), "|")
    labels = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1]], np.int64)
    q = np.where(labels == 1, _sigmoid(_MANY_Z), _sigmoid(-_MANY_Z))
    assert _loss(label, labels, _MANY_Z) == pytest.approx(-np.log(q).mean(), rel=1e-5)
    weights = np.array([1, 0, 4])
    found = _loss(label, labels, _MANY_Z, class_weights=(1.0, 0.0, 4.0))
    assert found == pytest.approx((-weights * np.log(q)).mean(), rel=1e-5)


_Y = np.float32([1.0, 0.5, 2.0, 0.25])
_E = _Y - _Z
_OF_NUMBERS = {
    "default": ({}, _E**2),
    "absolute": ({"loss": "absolute"}, np.abs(_E)),
    "huber": (
        {"loss": "huber", "huber_delta": 1.2},
        np.where(np.abs(_E) <= 1.2, _E**2 / 2, 1.2 * (np.abs(_E) - 0.6)),
    ),
    "quantile": (
        {"loss": "quantile", "quantile": 0.9},
        np.where(_E > 0, 0.9 * _E, -0.1 * _E),
    ),
}


@pytest.mark.parametrize(("settings", "losses"), _OF_NUMBERS.values(), ids=_OF_NUMBERS)
def test_numbers(settings, losses):
    found = _loss(Label("y"), _Y, _Z[:, None], **settings)
    assert found == pytest.approx(losses.mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("distribution", "losses"),
    [
        (Distribution.LOGNORMAL, (np.log(_Y) - _Z) ** 2),
        (Distribution.POISSON, np.exp(_Z) - _Y * _Z),
    ],
)
def test_distributions(distribution, losses):
    label = Label("y", distribution=distribution)
    assert _loss(label, _Y, _Z[:, None]) == pytest.approx(losses.mean(), rel=1e-5)


def test_logistic():
    y = _Y / 2
    losses = -y * np.log(_sigmoid(_Z)) - (1 - y) * np.log(_sigmoid(-_Z))
    label = Label("y", distribution=Distribution.LOGISTIC)
    assert _loss(label, y, _Z[:, None]) == pytest.approx(losses.mean(), rel=1e-5)


def test_several_labels():
    labels = Labels({"a": _BINARY, "b": Label("z")}, {"a": 2.0, "b": 0.5})
    logits = np.stack([_Z, _Z], axis=1)
    found = _loss(labels, {"a": _NAMES, "b": _Y}, logits)
    wanted = 2 * -np.log(_Q).mean() + 0.5 * (_E**2).mean()
    assert found == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    ("label", "settings", "said"),
    [
        (_BINARY, {"loss": "huber"}, "loss=huber does not fit the label y"),
        (Label("y"), {"loss": "focal"}, "default, huber, absolute, quantile"),
        (
            Label("y", distribution=Distribution.POISSON),
            {"loss": "huber"},
            "distribution poisson",
        ),
        (_MANY, {"class_weights": (1.0, 2.0)}, "has 2 elements; .* classes a, b, c"),
        (Label("y"), {"class_weights": (1.0, 2.0)}, "which has no classes"),
        (
            Labels({"a": _BINARY, "b": Label("z")}, {"a": 1.0, "b": 1.0}),
            {"loss": "focal"},
            "for models of one label",
        ),
    ],
)
def test_what_does_not_fit(label, settings, said):
    with pytest.raises(UserError, match=said):
        _loss(label, _NAMES, _Z[:, None], **settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "hinge"}, "loss=hinge is unknown; it is default, focal"),
        ({"smoothing": 1.0}, "smoothing must be in"),
        ({"quantile": 0.0}, "quantile must be in"),
        ({"class_weights": (0.0, 0.0)}, "one must be above"),
    ],
)
def test_wrong_settings(settings, said):
    with pytest.raises(ValueError, match=said):
        hparams.Objective(**settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"optimizer": "adma"}, "optimizer=adma is unknown; it is adam, adamw"),
        ({"schedule": "piecewise"}, "needs boundaries"),
        (
            {"schedule": "piecewise", "boundaries": (5, 3), "factors": (1.0, 1.0)},
            "must rise",
        ),
        (
            {"schedule": "piecewise", "boundaries": (5,), "factors": ()},
            "as many elements",
        ),
        ({"momentum": 0.9}, "momentum has no effect with optimizer=adam"),
        ({"decay_steps": 5}, "decay_steps has no effect with schedule=constant"),
        ({"accumulate": 0}, "accumulate may not be below 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_wrong_optimization(settings, said):
    with pytest.raises(ValueError, match=said):
        hparams.Custom(**settings)
