"""The premade wide & deep Estimators on small data."""

from __future__ import annotations

import dataclasses

import helpers_models as models
import numpy as np
import pytest
from helpers_models import FEATURE_PARTS, FEATURES, LABEL_KINDS

from model_fns import hparams, premade
from pipeline.types import Hashed, Vocabulary

SETTINGS = hparams.WideDeep(
    hidden_units=(16,), learning_rate=0.02, wide_learning_rate=0.1
)


@pytest.mark.parametrize("kind", LABEL_KINDS)
def test_every_kind_of_label_is_learned(tmp_path, kind):
    models.check_label_is_learned(premade, SETTINGS, tmp_path, kind)


def test_every_kind_of_feature_under_any_column_name(tmp_path):
    models.check_runs(premade, SETTINGS, tmp_path, FEATURES)


@pytest.mark.parametrize("part", FEATURE_PARTS)
def test_any_part_may_be_empty(tmp_path, part):
    models.check_runs(premade, SETTINGS, tmp_path, FEATURE_PARTS[part])


def test_a_label_outside_the_classes_is_shown(tmp_path):
    models.check_bad_label_is_shown(premade, SETTINGS, tmp_path)


def test_rows_of_weight_zero_do_not_count(tmp_path):
    models.check_weight_of_zero_removes_rows(premade, SETTINGS, tmp_path)


def test_same_seed_same_model(tmp_path):
    models.check_same_seed_same_model(premade, SETTINGS, tmp_path)


def test_resumed_training_equals_uninterrupted(tmp_path):
    models.check_resumed_equals_uninterrupted(premade, SETTINGS, tmp_path)


def test_another_learning_rate_counts_when_training_goes_on(tmp_path):
    models.check_new_learning_rate_counts(
        premade, SETTINGS, tmp_path, learning_rate=1e-12
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
        model = models.build(premade, settings, case, tmp_path / "model")
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
    model = models.build(premade, SETTINGS, case, tmp_path / "model")
    models.train(model, case, 2)
    by_name = models.variables(model)
    vocabulary = by_name["linear/linear_model/number/weights"]
    hashed = by_name["linear/linear_model/hashed/weights"]
    assert (vocabulary != 0).all()  # -1, 0 and the others
    assert np.count_nonzero(hashed) == 4  # -1, 0, 1, 2
