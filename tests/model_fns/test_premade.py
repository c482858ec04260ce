"""The premade Estimators: what is theirs alone."""

from __future__ import annotations

import dataclasses

import helpers_models as models
import numpy as np
import pytest

from model_fns import premade_hparams, registry
from pipeline.types import Hashed, UserError, Vocabulary

WIDE_DEEP = registry.find("wide_deep")
SETTINGS = premade_hparams.WideDeep(
    hidden_units=(16,), learning_rate=0.02, wide_learning_rate=0.1
)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("wide_l1", 1e6), ("wide_l2", 1e6), ("wide_learning_rate", 1e-9)],
)
def test_another_wide_setting_counts_when_training_goes_on(tmp_path, setting, value):
    """FTRL computes the weights anew, from sums, so each of these makes them small."""
    features = [Vocabulary("marital-status", "marital-status", use="wide")]
    case = models.label_case(tmp_path / "data", features=features)
    largest = []
    for max_steps, settings in (
        (3, SETTINGS),
        (6, dataclasses.replace(SETTINGS, **{setting: value})),
    ):
        model = models.build(WIDE_DEEP, settings, case, tmp_path / "model")
        models.train(model, case, max_steps)
        weights = model.get_variable_value("linear/linear_model/marital-status/weights")
        largest.append(np.max(np.abs(weights)))
    assert largest[0] > 0.05
    assert largest[1] < largest[0] / 5


def test_minus_one_is_a_category_like_others(tmp_path):
    """Stock feature columns take the int -1 for a missing value and drop it."""
    features = [
        Vocabulary("number", "\u65e5\u672c", use="wide"),
        Hashed("hashed", "\u65e5\u672c", 50, use="wide"),
    ]
    case = models.label_case(tmp_path / "data", features=features)
    model = models.build(WIDE_DEEP, SETTINGS, case, tmp_path / "model")
    models.train(model, case, 2)
    by_name = models.variables(model)
    vocabulary = by_name["linear/linear_model/number/weights"]
    hashed = by_name["linear/linear_model/hashed/weights"]
    assert (vocabulary != 0).all()  # -1, 0 and the others
    assert np.count_nonzero(hashed) == 4  # -1, 0, 1, 2


def test_the_baseline_says_the_mean_whatever_the_row(tmp_path):
    case = models.label_case(tmp_path / "data", "regression")
    model = models.build(
        registry.find("baseline"), premade_hparams.Baseline(), case, tmp_path / "model"
    )
    models.train(model, case, 150)
    found = [p["predictions"][0] for p in models.predict(model, case)]
    labels = [row[models.LABEL] for row in case.rows]
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(np.mean(labels), abs=0.1)


@pytest.mark.parametrize("name", ["linear", "linear_sdca"])
def test_l1_makes_weights_zero(tmp_path, name):
    case = models.label_case(tmp_path / "data", features=models.FEATURES)
    shares = []
    for l1 in (0.0, 2.0):
        settings = registry.find(name).hparams(l1=l1)
        model = models.build(registry.find(name), settings, case, tmp_path / str(l1))
        models.train(model, case, 40)
        weights = [
            v for n, v in models.variables(model).items() if n.endswith("/weights")
        ]
        shares.append(np.mean(np.concatenate([w.ravel() for w in weights]) == 0))
    assert shares[1] > shares[0]


@pytest.mark.parametrize("name", ["linear", "linear_sdca"])
def test_numbers_are_read_by_a_linear_model(tmp_path, name):
    """By default they are for the deep part, which it has not."""
    case = models.label_case(tmp_path / "data", features=models.FEATURES)
    model = models.build(
        registry.find(name), registry.find(name).hparams(), case, tmp_path / "model"
    )
    models.train(model, case, 3)
    assert models.variables(model)["linear/linear_model/gain/weights"] != 0


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("linear", Vocabulary("place", "\u6771\u4eac", use="deep")),
        ("linear_sdca", Vocabulary("place", "\u6771\u4eac", use="deep")),
        ("dnn", Vocabulary("place", "\u6771\u4eac", use="wide")),
        ("kmeans", Vocabulary("place", "\u6771\u4eac", use="wide")),
    ],
)
def test_a_model_with_nothing_to_read(tmp_path, name, feature):
    case = models.label_case(tmp_path / "data", features=[feature])
    with pytest.raises(UserError, match="no feature is for the .*`use: both`"):
        models.build(
            registry.find(name), registry.find(name).hparams(), case, tmp_path / "model"
        )
