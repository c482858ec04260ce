"""SDCA: what it comes to, since its way there is drawn by the machine."""

from __future__ import annotations

import helpers_models as models
import numpy as np
import pytest
from helpers_models import LABEL, LABEL_KINDS, WEIGHT

from model_fns import premade_hparams, registry
from pipeline.compat import tf
from pipeline.types import Distribution, Label, Numeric, Scale, UserError, Vocabulary

SDCA = registry.find("linear_sdca")
SETTINGS = premade_hparams.LinearSdca(l2=1.0)
# It makes each row another one.
_GAIN = Numeric("gain", models.ODD_NAME, Scale.LOG)
_FEATURES = [
    Numeric("age", "age", use="both"),
    Vocabulary("marital-status", "marital-status"),
    _GAIN,
]


def _weights(model) -> dict[str, np.ndarray]:
    return {
        name: value
        for name, value in models.variables(model).items()
        if name.startswith("linear/") and name.endswith("weights")
    }


def _assert_close(first, second):
    for name, value in _weights(first).items():
        np.testing.assert_allclose(
            value, _weights(second)[name], atol=0.02, err_msg=name
        )


def test_interrupted_training_comes_to_the_same(tmp_path):
    """What SDCA remembers of each row is part of the checkpoint."""
    case = models.label_case(tmp_path / "data", features=_FEATURES)
    whole = models.build(SDCA, SETTINGS, case, tmp_path / "whole")
    models.train(whole, case, 400)
    for start_step, max_steps in ((0, 200), (200, 400)):
        parts = models.build(SDCA, SETTINGS, case, tmp_path / "parts")
        models.train(parts, case, max_steps, start_step)
    _assert_close(whole, parts)


def test_it_comes_to_the_least_regularised_loss(tmp_path):
    """sum(loss) + l2/2 |w|^2 over all rows, bias included, found by Newton's method."""
    rows = [
        row | {LABEL: "j\u00e1" if row["age"] + i % 30 > 60 else "no"}
        for i, row in enumerate(models.rows(150))
    ]
    features = [Numeric("age", "age"), _GAIN]
    label = LABEL_KINDS["binary"][0]
    case = models.make_case(tmp_path / "data", rows, label, features=features)
    model = models.build(SDCA, SETTINGS, case, tmp_path / "model")
    models.train(model, case, 400)
    x = np.array(
        [
            [(r["age"] - 45) / 15, (np.log1p(r[models.ODD_NAME]) - 3) / 2, 1]
            for r in rows
        ]
    )
    y = np.array([row[LABEL] == "j\u00e1" for row in rows])
    w = np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        hessian = (x.T * (p * (1 - p))) @ x + np.eye(3)
        w -= np.linalg.solve(hessian, x.T @ (p - y) + w)
    found = _weights(model)
    np.testing.assert_allclose(
        found["linear/linear_model/age/weights"][0], w[:1], atol=0.05
    )
    np.testing.assert_allclose(
        found["linear/linear_model/bias_weights"], w[2:], atol=0.05
    )


def test_rows_of_weight_zero_do_not_count(tmp_path):
    trained = []
    for other in ("no", "j\u00e1"):
        labelled = []
        for i, row in enumerate(models.rows(96)):
            ignored = i % 3 == 0
            y = other if ignored else LABEL_KINDS["binary"][2](row["score"])
            labelled.append(row | {LABEL: y, WEIGHT: 0.0 if ignored else 1.5})
        case = models.make_case(
            tmp_path / f"data {other}",
            labelled,
            LABEL_KINDS["binary"][0],
            features=_FEATURES,
            weight=WEIGHT,
        )
        trained.append(models.build(SDCA, SETTINGS, case, tmp_path / f"model {other}"))
        models.train(trained[-1], case, 400)
    _assert_close(*trained)


def test_rows_that_are_alike_are_refused(tmp_path):
    """SDCA would take them for one row, and learn other shares than the data's."""
    features = [Vocabulary("marital-status", "marital-status")]
    case = models.label_case(tmp_path / "data", features=features)
    model = models.build(SDCA, SETTINGS, case, tmp_path / "model")
    with pytest.raises(tf.errors.InvalidArgumentError, match="use --model=linear"):
        models.train(model, case, 5)


def test_a_distribution_it_would_take_for_another_is_refused(tmp_path):
    """The premade optimizer takes every regression for one of squares."""
    label = Label(LABEL, distribution=Distribution.POISSON)
    rows = [row | {LABEL: float(row["score"])} for row in models.rows(32)]
    case = models.make_case(tmp_path / "data", rows, label, "float", _FEATURES)
    with pytest.raises(UserError, match="does no poisson regression; use --model=lin"):
        models.build(SDCA, SETTINGS, case, tmp_path / "model")
