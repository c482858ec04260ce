"""What every model of the registry must do, on small data."""

from __future__ import annotations

import helpers_models as models
import pytest
from helpers_models import (
    FEATURE_PARTS,
    FEATURES,
    FEW_FEATURES,
    LABEL_KINDS,
)

from model_fns import premade_hparams, registry, tabular_hparams

_NETWORK = {
    "hidden_units": (16,),
    "learning_rate": 0.02,
    "batch_norm_momentum": 0.9,
    "dropout": 0.0,
}
SETTINGS = {
    "linear": premade_hparams.Linear(learning_rate=0.3),
    "linear_sdca": premade_hparams.LinearSdca(l2=0.1),
    "dnn": premade_hparams.Dnn(hidden_units=(16,), learning_rate=0.02),
    "wide_deep": premade_hparams.WideDeep(
        hidden_units=(16,), learning_rate=0.02, wide_learning_rate=0.1
    ),
    "baseline": premade_hparams.Baseline(),
    "kmeans": premade_hparams.KMeans(clusters=3),
    "keras_wide_deep": tabular_hparams.Network(**_NETWORK),
    "dcn": tabular_hparams.Dcn(**_NETWORK),
    "deepfm": tabular_hparams.DeepFm(**_NETWORK, vector_width=4),
}
SUPERVISED = [name for name, model in registry.MODELS.items() if model.tasks]
LEARNING = [name for name in SUPERVISED if name != "baseline"]
TABULAR = ["keras_wide_deep", "dcn", "deepfm"]
DRAWN = ["dnn", "wide_deep", "kmeans", *TABULAR]
"""Models whose first weights are drawn at random."""

# Labels reach the heads alike, so that one model of each family shows all kinds.
_KINDS = {"wide_deep": list(LABEL_KINDS), "keras_wide_deep": list(LABEL_KINDS)}
_FEW_KINDS = ["binary", "classes", "regression"]


# The optimizer of SDCA draws its rows with a seed of the machine's, so that only what
# it comes to is the same: test_linear_sdca.py.
REPEATED = [name for name in SETTINGS if name != "linear_sdca"]


def _check(check, name: str, *arguments, settings=None, **keywords) -> None:
    check(registry.find(name), settings or SETTINGS[name], *arguments, **keywords)


def test_no_model_is_left_out():
    assert SETTINGS.keys() == registry.MODELS.keys()
    for name, settings in SETTINGS.items():
        assert type(settings) is registry.find(name).hparams


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in LEARNING
        for kind in _KINDS.get(name, _FEW_KINDS)
        if LABEL_KINDS[kind][0].task in registry.find(name).tasks
    ],
)
def test_the_label_is_learned(tmp_path, name, kind):
    _check(
        models.check_label_is_learned,
        name,
        tmp_path,
        kind,
        # To SDCA rows that are alike are one.
        features=FEATURES if name == "linear_sdca" else FEW_FEATURES,
    )


@pytest.mark.parametrize("name", LEARNING)
def test_every_kind_of_feature_under_any_column_name(tmp_path, name):
    _check(models.check_runs, name, tmp_path, FEATURES)


@pytest.mark.parametrize("part", FEATURE_PARTS)
@pytest.mark.parametrize("name", ["wide_deep", *TABULAR])
def test_any_part_may_be_empty(tmp_path, name, part):
    _check(models.check_runs, name, tmp_path, FEATURE_PARTS[part])


@pytest.mark.parametrize("name", SUPERVISED)
def test_a_label_outside_the_classes_is_shown(tmp_path, name):
    if len(registry.find(name).tasks) > 2:
        _check(models.check_bad_label_is_shown, name, tmp_path)


@pytest.mark.parametrize("name", [n for n in REPEATED if n in SUPERVISED])
def test_rows_of_weight_zero_do_not_count(tmp_path, name):
    _check(models.check_weight_of_zero_removes_rows, name, tmp_path)


@pytest.mark.parametrize("name", REPEATED)
def test_same_seed_same_model(tmp_path, name):
    _check(models.check_same_seed_same_model, name, tmp_path)


@pytest.mark.parametrize("name", DRAWN)
def test_another_seed_another_model(tmp_path, name):
    _check(models.check_other_seed_other_model, name, tmp_path)


@pytest.mark.parametrize("name", REPEATED)
def test_resumed_training_equals_uninterrupted(tmp_path, name):
    _check(models.check_resumed_equals_uninterrupted, name, tmp_path)


@pytest.mark.parametrize("name", TABULAR)
def test_resumed_training_with_dropout_equals_uninterrupted(tmp_path, name):
    settings = registry.find(name).hparams(hidden_units=(16, 8), dropout=0.4)
    _check(models.check_resumed_equals_uninterrupted, name, tmp_path, settings=settings)


@pytest.mark.parametrize("name", ["dnn", "wide_deep", *TABULAR])
def test_another_learning_rate_counts_when_training_goes_on(tmp_path, name):
    _check(models.check_new_learning_rate_counts, name, tmp_path, learning_rate=1e-12)
