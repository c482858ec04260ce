"""The wide & deep model from Keras layers on small data."""

from __future__ import annotations

import helpers_models as models
import numpy as np
import pytest
from helpers_models import FEATURE_PARTS, FEATURES, LABEL_KINDS

from model_fns import hparams, keras_wide_deep
from pipeline.types import Numeric, Vocabulary

SETTINGS = hparams.KerasWideDeep(
    hidden_units=(16,), learning_rate=0.02, batch_norm_momentum=0.9, dropout=0.0
)
DROPOUT = hparams.KerasWideDeep(hidden_units=(16, 8), dropout=0.4)


@pytest.mark.parametrize("kind", LABEL_KINDS)
def test_every_kind_of_label_is_learned(tmp_path, kind):
    models.check_label_is_learned(keras_wide_deep, SETTINGS, tmp_path, kind)


def test_every_kind_of_feature_under_any_column_name(tmp_path):
    models.check_runs(keras_wide_deep, SETTINGS, tmp_path, FEATURES)


@pytest.mark.parametrize("part", FEATURE_PARTS)
def test_any_part_may_be_empty(tmp_path, part):
    models.check_runs(keras_wide_deep, SETTINGS, tmp_path, FEATURE_PARTS[part])


def test_a_label_outside_the_classes_is_shown(tmp_path):
    models.check_bad_label_is_shown(keras_wide_deep, SETTINGS, tmp_path)


def test_rows_of_weight_zero_do_not_count(tmp_path):
    models.check_weight_of_zero_removes_rows(keras_wide_deep, SETTINGS, tmp_path)


def test_same_seed_same_model_with_dropout(tmp_path):
    models.check_same_seed_same_model(keras_wide_deep, DROPOUT, tmp_path)


def test_resumed_training_with_dropout_equals_uninterrupted(tmp_path):
    models.check_resumed_equals_uninterrupted(keras_wide_deep, DROPOUT, tmp_path)


def test_another_learning_rate_counts_when_training_goes_on(tmp_path):
    models.check_new_learning_rate_counts(
        keras_wide_deep, SETTINGS, tmp_path, learning_rate=1e-12
    )


def test_a_model_without_a_deep_part_has_a_bias(tmp_path):
    """It alone can answer for a category that training never saw."""
    features = [Vocabulary("place", "\u6771\u4eac", use="wide")]
    rows = [row | {models.LABEL: 1, "\u6771\u4eac": "x"} for row in models.rows(64)]
    label = models.Label(models.LABEL, ("0", "1"))
    case = models.make_case(tmp_path / "data", rows, label, "int", features)
    model = models.build(keras_wide_deep, SETTINGS, case, tmp_path / "model")
    models.train(model, case, 30)
    unseen = [row | {"\u6771\u4eac": "never seen"} for row in rows[:1]]
    case = models.make_case(tmp_path / "unseen", unseen, label, "int", features)
    (prediction,) = models.predict(model, case)
    assert prediction["probabilities"][1] > 0.55


def test_l2_holds_for_all_wide_weights(tmp_path):
    """The training loss holds the sum of their squares."""
    features = [
        Vocabulary("marital-status", "marital-status", use="wide"),
        Numeric("age", "age", use="wide"),
    ]
    case = models.label_case(tmp_path / "data", features=features)
    model = models.build(keras_wide_deep, SETTINGS, case, tmp_path / "model")
    models.train(model, case, 20)
    plain = models.evaluate(model, case)
    weights = [
        value
        for name, value in models.variables(model).items()
        if name.endswith(("embeddings", "kernel"))
    ]
    assert len(weights) == 2
    regularised = models.build(
        keras_wide_deep,
        hparams.KerasWideDeep(hidden_units=(16,), l2=0.5),
        case,
        tmp_path / "model",
    )
    # The head reports `loss` with and `average_loss` without regularisation.
    metrics = models.evaluate(regularised, case)
    penalty = 0.5 * sum(np.sum(np.square(w)) for w in weights)
    assert metrics["average_loss"] == pytest.approx(plain["average_loss"], rel=1e-6)
    assert metrics["loss"] - plain["loss"] == pytest.approx(penalty, rel=1e-4)
