"""Further metrics, mixed precision and XLA, on the Estimators of the registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import helpers_models
import numpy as np
import pytest
from helpers_models import evaluate, label_case, predict, train

from model_fns import hparams, metric_names, registry
from pipeline import computing
from pipeline.compat import estimator, tf, tf_keras
from pipeline.estimator_options import EstimatorOptions
from pipeline.types import Distribution, Label, UserError

ROOT = Path(__file__).parents[2]


def own_metrics(labels, predictions):
    """A metric_fn as projects hand it to estimator.add_metrics."""
    mean = tf_keras.metrics.Mean()
    mean.update_state(tf.cast(labels, tf.float32))
    share = tf.compat.v1.metrics.mean(predictions["probabilities"][:, 1])
    return {"mean_id": mean, "mean_probability": share}


def _build(case, directory, model="keras_wide_deep", **options):
    entry = registry.find(model)
    settings = hparams.parse("hidden_units=[8]", entry.hparams)
    config = estimator.RunConfig(model_dir=str(directory), tf_random_seed=1)
    made = entry.builder()(case.declaration, case.constants, settings, config)
    return computing.apply(made, EstimatorOptions(**options), case.declaration)


def _metrics(*texts):
    return metric_names.parse(texts)


@pytest.mark.parametrize("model", ["keras_wide_deep", "wide_deep"])
def test_metrics_of_two_classes(tmp_path, monkeypatch, model):
    monkeypatch.syspath_prepend(os.path.dirname(os.path.abspath(__file__)))
    case = label_case(tmp_path / "data")
    names = ["precision@0.3", "recall@0.3", "f1@0.3", "accuracy@0.3", "auc", "auc_pr"]
    names += ["log_loss", "test_computing:own_metrics"]
    made = _build(case, tmp_path / "model", model, metrics=_metrics(*names))
    train(made, case, 40)
    metrics = evaluate(made, case)
    found = predict(made, case)
    likely = np.array([row["probabilities"][1] for row in found])
    wanted = np.array([row[helpers_models.LABEL] != "no" for row in case.rows])
    hits = (likely > 0.3) & wanted
    precision, recall = hits.sum() / (likely > 0.3).sum(), hits.sum() / wanted.sum()
    assert metrics["precision@0.3"] == pytest.approx(precision, abs=1e-6)
    assert metrics["recall@0.3"] == pytest.approx(recall, abs=1e-6)
    f1 = 2 * precision * recall / (precision + recall)
    assert metrics["f1@0.3"] == pytest.approx(f1, abs=1e-6)
    accuracy = np.mean((likely > 0.3) == wanted)
    assert metrics["accuracy@0.3"] == pytest.approx(accuracy, abs=1e-6)
    assert metrics["log_loss"] == pytest.approx(metrics["average_loss"], abs=1e-5)
    assert metrics["mean_id"] == pytest.approx(wanted.mean(), abs=1e-6)
    assert metrics["mean_probability"] == pytest.approx(likely.mean(), abs=1e-5)


def test_metrics_of_many_classes(tmp_path):
    case = label_case(tmp_path / "data", "classes")
    made = _build(case, tmp_path / "model", metrics=_metrics("top@2", "log_loss"))
    train(made, case, 10)
    metrics = evaluate(made, case)
    found = predict(made, case)
    ids = ["CAB".index(row[helpers_models.LABEL]) for row in case.rows]
    hits = [
        i in np.argsort(row["probabilities"])[-2:]
        for i, row in zip(ids, found, strict=True)
    ]
    assert metrics["top@2"] == pytest.approx(np.mean(hits), abs=1e-6)
    assert metrics["log_loss"] == pytest.approx(metrics["average_loss"], abs=1e-5)


def test_metrics_of_numbers(tmp_path):
    case = label_case(tmp_path / "data", "regression")
    made = _build(case, tmp_path / "model", metrics=_metrics("rmse", "mae", "mse"))
    train(made, case, 10)
    metrics = evaluate(made, case)
    errors = np.array(
        [
            row["predictions"][0] - given[helpers_models.LABEL]
            for row, given in zip(predict(made, case), case.rows, strict=True)
        ]
    )
    assert metrics["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    assert metrics["rmse"] ** 2 == pytest.approx(metrics["mse"], rel=1e-5)
    assert metrics["mse"] == pytest.approx(metrics["average_loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope", "'nope' is unknown; there are accuracy, precision"),
        ("auc@0.5", "'auc@0.5' is not allowed"),
        ("precision@1", "'precision@1' is not allowed"),
        ("precision@x", "'precision@x' is not allowed"),
        ("top@1.5", "'top@1.5' is not allowed"),
    ],
)
def test_metrics_that_there_are_not(text, said):
    with pytest.raises(UserError, match=said):
        metric_names.parse([text])


def test_metrics_must_suit_the_label(tmp_path):
    case = label_case(tmp_path / "data", "regression")
    with pytest.raises(UserError, match="auc does not suit .*these do: mse, rmse"):
        metric_names.check(_metrics("auc"), case.declaration)


def test_mixed_precision(tmp_path):
    """Close to float32 but not the same, with float32 variables; exports are float32."""
    case = label_case(tmp_path / "data")
    losses = {}
    for mixed in (False, True):
        made = _build(case, tmp_path / f"{mixed}", mixed_precision=mixed)
        train(made, case, 60)
        losses[mixed] = evaluate(made, case)["average_loss"]
        for name, value in helpers_models.variables(made).items():
            assert value.dtype in (np.float32, np.int64), name
    assert losses[True] != losses[False]
    assert losses[True] == pytest.approx(losses[False], abs=0.02)
    assert tf_keras.mixed_precision.global_policy().name == "float32"
    plain = _build(case, tmp_path / "True")
    assert evaluate(plain, case)["average_loss"] == pytest.approx(
        losses[True], abs=0.01
    )


_XLA = """
import sys
sys.path[:0] = sys.argv[1:3]
from pipeline.estimator_options import EstimatorOptions
options = EstimatorOptions(xla=sys.argv[4] == "xla")
options.prepare()
import json, pathlib
from helpers_models import evaluate, label_case, train
from model_fns import hparams, registry
from pipeline import computing
from pipeline.compat import estimator
case = label_case(pathlib.Path(sys.argv[3]) / "data")
entry = registry.find("keras_wide_deep")
config = estimator.RunConfig(
    model_dir=sys.argv[3] + "/model",
    tf_random_seed=1,
    session_config=computing.session_config(options),
)
made = entry.builder()(case.declaration, case.constants, entry.hparams(), config)
train(made, case, 30)
print(json.dumps({k: float(v) for k, v in evaluate(made, case).items()}))
"""


@pytest.mark.slow
def test_xla(tmp_path):
    """In processes of their own, since TensorFlow reads the setting once."""
    found = {}
    for kind in ("plain", "xla"):
        (tmp_path / kind).mkdir()
        arguments = [str(ROOT), str(ROOT / "tests"), str(tmp_path / kind), kind]
        done = subprocess.run(
            [sys.executable, "-c", _XLA, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found[kind] = json.loads(done.stdout.splitlines()[-1])
        assert ("Compiled cluster using XLA" in done.stderr) == (kind == "xla")
    for name, value in found["plain"].items():
        assert found["xla"][name] == pytest.approx(value, abs=0.02), name


def test_options_as_json():
    assert EstimatorOptions().as_json() == {}
    options = EstimatorOptions(_metrics("auc", "top@3"), mixed_precision=True)
    assert options.as_json() == {"metrics": ["auc", "top@3"], "mixed_precision": True}


def test_a_distribution_is_a_regression():
    label = Label("y", distribution=Distribution.POISSON)
    assert "rmse" in [
        n for n, tasks in metric_names.TASKS.items() if label.task in tasks
    ]


def test_mixed_precision_is_refused_where_it_has_no_effect(tmp_path):
    case = label_case(tmp_path / "data")
    options = EstimatorOptions(mixed_precision=True)
    options.check(registry.find("keras_wide_deep"), case.declaration)
    with pytest.raises(UserError, match="--mixed_precision has no effect on wide_deep"):
        options.check(registry.find("wide_deep"), case.declaration)
