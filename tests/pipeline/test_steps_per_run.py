"""--steps_per_run trains as single steps do, and saves and evaluates as asked."""

from __future__ import annotations

import helpers_training
import numpy as np
import pytest

from pipeline import evaluations
from pipeline.types import UserError

# BatchNormalization, dropout by step, a penalty, a schedule and an embedding.
_MODEL = {
    "model": "keras_wide_deep",
    "hparams": "hidden_units=[4],dropout=0.2,l2=0.01,schedule=exponential,"
    "decay_steps=5,learning_rate=0.05",
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _train(directory, dataset, **changes):
    given = {**_MODEL, "max_steps": 23, "checkpoint_steps": 10, **changes}
    return helpers_training.train(directory, dataset, **given)


def test_the_model_is_that_of_single_steps(tmp_path, dataset):
    _train(tmp_path / "one", dataset)
    _train(tmp_path / "many", dataset, steps_per_run=7)
    one = helpers_training.variables(tmp_path / "one")
    many = helpers_training.variables(tmp_path / "many")
    assert one["global_step"] == 23
    assert one.keys() == many.keys()
    for name, value in one.items():
        np.testing.assert_allclose(
            many[name], value, rtol=1e-5, atol=1e-6, err_msg=name
        )
    steps = [e.global_step for e in evaluations.read(str(tmp_path / "many"))]
    assert steps == [e.global_step for e in evaluations.read(str(tmp_path / "one"))]
    assert steps == [10, 20, 23]


def test_the_curves_have_loss_and_learning_rate(tmp_path, dataset):
    _train(tmp_path, dataset, steps_per_run=2, summary_steps=2, max_steps=40)
    found = {"loss": {}, "learning_rate": {}}
    for event in helpers_training.events(tmp_path):
        for value in event.summary.value:
            if value.tag in found:
                found[value.tag][event.step] = value.simple_value
    assert len(found["loss"]) >= 4
    assert found["loss"].keys() == found["learning_rate"].keys()
    rates = [rate for _, rate in sorted(found["learning_rate"].items())]
    assert rates == sorted(rates, reverse=True) and rates[-1] < rates[0]


def test_resumed_in_the_middle_of_a_call(tmp_path, dataset):
    _train(tmp_path / "whole", dataset, steps_per_run=4)
    _train(tmp_path / "parts", dataset, steps_per_run=4, max_steps=9)
    _train(tmp_path / "parts", dataset, steps_per_run=4)
    whole = helpers_training.variables(tmp_path / "whole")
    for name, value in helpers_training.variables(tmp_path / "parts").items():
        np.testing.assert_allclose(
            value, whole[name], rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_a_premade_model_is_refused(tmp_path, dataset):
    with pytest.raises(UserError, match="--steps_per_run has no effect on this model"):
        _train(tmp_path, dataset, model="wide_deep", hparams="", steps_per_run=5)
