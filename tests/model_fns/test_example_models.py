"""The four ways of writing a model: all three modes, and what is served."""

from __future__ import annotations

from pathlib import Path

import helpers_models
import numpy as np
import pytest
from helpers_models import MIXED_FEATURES, evaluate, label_case, predict, train
from helpers_records import column, constants_for, declare, examples, write_records

from export import saved_model
from model_fns import adapter, hparams, registry
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import Label, Numeric

ROOT = Path(__file__).parents[2]
_L = tf_keras.layers


def _build(name, case, directory, text=""):
    entry = registry.find(name)
    settings = hparams.parse(text, entry.hparams)
    config = estimator.RunConfig(model_dir=str(directory), tf_random_seed=1)
    return entry.builder()(case.declaration, case.constants, settings, config)


def _served(model, case, directory) -> dict[str, np.ndarray]:
    columns = case.declaration.input_columns
    saved_model.write(model, model.latest_checkpoint(), columns, str(directory))
    serve = tf.saved_model.load(str(directory)).signatures["serving_default"]
    rows = tf.constant(examples(case.rows, columns))
    return {name: value.numpy() for name, value in serve(examples=rows).items()}


@pytest.mark.parametrize("way", ["sequential", "functional", "subclassed"])
def test_ways_of_writing_a_keras_model(tmp_path, monkeypatch, way):
    monkeypatch.syspath_prepend(str(ROOT))
    case = label_case(tmp_path / "data", "classes", MIXED_FEATURES)
    name = f"examples.custom_models.keras_ways:{way}"
    text = "width=16,learning_rate=0.02,loss=smoothed"
    model = _build(name, case, tmp_path / "model", text)
    train(model, case, 100)
    metrics = evaluate(model, case)
    assert metrics["accuracy"] > 0.9
    assert evaluate(model, case) == metrics
    found = predict(model, case)
    served = _served(model, case, tmp_path / "export")
    for output in ("probabilities", "logits"):
        wanted = np.stack([row[output] for row in found])
        np.testing.assert_allclose(served[output], wanted, atol=1e-5)


# --- LOOP-3: batch normalisation in all three modes ------------------------------


def _x_case(directory):
    """One feature with mean 5 and standard deviation 1."""
    columns = [column("x", "float"), column("y", "float")]
    declaration = declare(columns, [Numeric("x", "x")], Label("y"))
    random = np.random.default_rng(0)
    rows = [{"x": float(v), "y": float(2 * v - 9)} for v in random.normal(5, 1, 256)]
    directory.mkdir()
    return helpers_models.Case(
        declaration,
        constants_for(declaration),
        write_records(directory, rows, columns),
        rows,
    )


class _Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self._norm = _L.BatchNormalization(momentum=0.95, name="norm")
        self._dense = _L.Dense(1)

    def call(self, raw, training=False):
        return self._dense(self._norm(raw["x"][:, tf.newaxis], training=training))


def _sequential():
    column_layer = _L.Lambda(lambda raw: raw["x"][:, tf.newaxis])
    norm = _L.BatchNormalization(momentum=0.95, name="norm")
    return tf_keras.Sequential([column_layer, norm, _L.Dense(1)])


def _functional():
    raw = {"x": tf_keras.Input([], name="x")}
    norm = _L.BatchNormalization(momentum=0.95, name="norm")
    return tf_keras.Model(raw, _L.Dense(1)(norm(_L.Reshape([1])(raw["x"]))))


def _graph_code(features, labels, mode):
    v1 = tf.compat.v1
    training = mode == estimator.ModeKeys.TRAIN
    net = v1.layers.batch_normalization(
        features["x"][:, tf.newaxis], training=training, momentum=0.95, name="norm"
    )
    head = estimator.RegressionHead()
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        logits = v1.layers.dense(net, 1)
    return head.create_estimator_spec(
        features,
        mode,
        logits,
        labels,
        train_op_fn=lambda loss: v1.train.AdamOptimizer(0.05).minimize(
            loss, v1.train.get_global_step()
        ),
    )


class _Losses(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.losses = []

    def before_run(self, run_context):
        losses = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)
        return tf.compat.v1.train.SessionRunArgs(losses[-1])

    def after_run(self, run_context, run_values):
        self.losses.append(run_values.results)


@pytest.mark.parametrize(
    "way",
    [_sequential, _functional, _Subclassed, _graph_code],
    ids=lambda w: w.__name__,
)
def test_batch_normalisation(tmp_path, way):
    case = _x_case(tmp_path / "data")
    model_fn = way
    if way is not _graph_code:
        model_fn = adapter.model_fn_from_keras(
            way, hparams.Custom(learning_rate=0.05), estimator.RegressionHead()
        )
    config = estimator.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1)
    model = estimator.Estimator(model_fn, config=config)
    hook = _Losses()
    options = helpers_models.TrainInput(64, 1000, seed=3)
    model.train(
        helpers_models.train_input_fn(case.records, case.declaration, options),
        hooks=[hook],
        max_steps=200,
    )
    name = next(n for n in model.get_variable_names() if n.endswith("moving_mean"))
    assert model.get_variable_value(name)[0] == pytest.approx(5, abs=0.5)
    variance = model.get_variable_value(name.replace("moving_mean", "moving_variance"))
    assert variance[0] != 1
    assert variance[0] == pytest.approx(1, abs=0.3)
    loss = evaluate(model, case)["loss"]
    assert loss <= max(1.2 * np.mean(hook.losses[-20:]), 0.02)
    predicted = [row["predictions"][0] for row in predict(model, case)]
    served = _served(model, case, tmp_path / "export")["predictions"][:, 0]
    np.testing.assert_allclose(served, predicted, atol=1e-5)
