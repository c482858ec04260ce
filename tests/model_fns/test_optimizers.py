"""Optimizers, schedules, limits and accumulation under real Estimators."""

from __future__ import annotations

import glob
import math
import os

import numpy as np
import pytest

from model_fns import adapter, decoupled, hparams, optimizers, schedules
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError

_L = tf_keras.layers
_ROWS = 48


def _data():
    random = np.random.default_rng(0)
    x = random.normal(size=[_ROWS, 3]).astype(np.float32)
    return x, (x @ np.float32([1, -2, 0.5]) + random.normal(size=_ROWS)).astype("f")


def _input_fn(batch):
    def input_fn():
        x, y = _data()
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(batch)

    return input_fn


class _Rows(_L.Layer):
    """A table of which each batch uses some rows: its gradient is sparse."""

    def build(self, shape):
        initializer = tf_keras.initializers.GlorotUniform(3)
        self._table = self.add_weight("table", [5, 3], initializer=initializer)

    def call(self, x):
        ids = tf.cast(tf.abs(x[:, 0]) * 2, tf.int32) % 5
        return x + tf.gather(self._table, ids)


def _network(rows: bool = True):
    initializer = tf_keras.initializers.GlorotUniform(1)
    return tf_keras.Sequential(
        [
            _L.Lambda(lambda features: features["x"]),
            *([_Rows()] if rows else []),
            _L.Dense(4, "tanh", kernel_initializer=initializer),
            _L.Dense(1, kernel_initializer=initializer),
        ]
    )


def _estimator(directory, optimization, build=_network, **config):
    model_fn = adapter.model_fn_from_keras(
        build, optimization, estimator.RegressionHead()
    )
    config = estimator.RunConfig(model_dir=str(directory), tf_random_seed=1, **config)
    return estimator.Estimator(model_fn, config=config)


def _weights(model) -> dict[str, np.ndarray]:
    return {
        name: model.get_variable_value(name)
        for name in model.get_variable_names()
        if name.split("/")[-1] in ("kernel", "bias", "table")
        and not name.startswith("training/")
    }


def _summaries(directory, tag) -> dict[int, float]:
    found = {}
    for path in glob.glob(f"{directory}/events*"):
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                if value.tag == tag:
                    found[event.step] = value.simple_value
    return found


# --- schedules -------------------------------------------------------------------

_SCHEDULES = {
    "constant": ({}, lambda n: 0.1),
    "warm-up": ({"warmup_steps": 4}, lambda n: 0.1 * min(1, (n + 1) / 4)),
    "exponential": (
        {"schedule": "exponential", "decay_steps": 5, "decay_rate": 0.5},
        lambda n: 0.1 * 0.5 ** (n / 5),
    ),
    "piecewise": (
        {"schedule": "piecewise", "boundaries": (3, 6), "factors": (0.5, 0.1)},
        lambda n: 0.1 * (1 if n < 3 else 0.5 if n < 6 else 0.1),
    ),
    "cosine": (
        {
            **{"schedule": "cosine", "decay_steps": 6, "warmup_steps": 2},
            "final_rate": 0.2,
        },
        lambda n: (
            0.1
            * min(1, (n + 1) / 2)
            * (0.2 + 0.8 * (1 + math.cos(math.pi * min(1, max(0, n - 2) / 6))) / 2)
        ),
    ),
}


@pytest.mark.parametrize(("settings", "rate"), _SCHEDULES.values(), ids=_SCHEDULES)
def test_schedules(settings, rate):
    schedule = schedules.Schedule(hparams.Optimization(learning_rate=0.1, **settings))
    for step in range(12):
        assert float(schedule(step)) == pytest.approx(rate(step), rel=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("kind", ["constant", "cosine"])
def test_all_read_the_global_step(tmp_path, optimizer, kind):
    """LOOP-2: steps, checkpoints, summaries and the schedule, over a resumption."""
    changes, rate = _SCHEDULES[kind]
    settings = hparams.Custom(optimizer=optimizer, learning_rate=0.1, **changes)
    for max_steps in (20, 40):
        model = _estimator(tmp_path, settings, save_summary_steps=1)
        model.train(_input_fn(8), max_steps=max_steps)
        assert model.get_variable_value("global_step") == max_steps
    names = {os.path.basename(p) for p in glob.glob(f"{tmp_path}/model.ckpt-*.index")}
    assert names == {f"model.ckpt-{step}.index" for step in (0, 20, 40)}
    rates = _summaries(tmp_path, "learning_rate")
    assert sorted(rates) == list(range(1, 41))
    for step, found in rates.items():
        # The summary of step 1 is of the first update, before which there were 0.
        assert found == pytest.approx(rate(step - 1), rel=1e-5)


# --- optimizers ------------------------------------------------------------------


@pytest.mark.parametrize("name", hparams.OPTIMIZERS)
def test_each_optimizer_learns(tmp_path, name):
    decay = {"weight_decay": 0.01} if name in ("adamw", "lion") else {}
    settings = hparams.Custom(optimizer=name, learning_rate=0.02, **decay)
    model = _estimator(tmp_path, settings)
    model.train(_input_fn(16), max_steps=1)
    before = model.evaluate(_input_fn(_ROWS), steps=1)["loss"]
    model.train(_input_fn(16), max_steps=90)
    assert model.evaluate(_input_fn(_ROWS), steps=1)["loss"] < before * 0.97


@pytest.mark.parametrize("name", ["adamw", "lion"])
def test_decoupled_optimizers_by_hand(name):
    """Three steps; a variable of one dimension does not decay; sparse is dense."""
    rate, decay = 0.1, 0.3
    gradients = [np.float32([[1, -2], [0, 0]]), np.float32([[-3, 0.5], [0, 0]])] * 2
    start = np.float32([[1.0, 2.0], [3.0, -4.0]])
    w, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for t, g in enumerate(gradients[:3], 1):
        if name == "adamw":
            w = w - rate * decay * w
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            scale = rate * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            w = w - scale * m / (np.sqrt(v) + 1e-7)
        else:
            w = w - rate * (np.sign(0.9 * m + 0.1 * g) + decay * w)
            m = 0.99 * m + 0.01 * g
    make = {"adamw": decoupled.AdamW, "lion": decoupled.Lion}[name]
    for sparse in (False, True):
        optimizer = make(rate, decay)
        variable, bias = tf.Variable(start), tf.Variable([1.0, 1.0])
        for g in gradients[:3]:
            gradient = tf.constant(g)
            if sparse:
                gradient = tf.IndexedSlices(
                    tf.constant([g[0] / 2, g[0] / 2]), tf.constant([0, 0]), (2, 2)
                )
            zero = tf.zeros([2])
            optimizer.apply_gradients([(gradient, variable), (zero, bias)])
        np.testing.assert_allclose(variable.numpy(), w, rtol=2e-5)
        np.testing.assert_array_equal(bias.numpy(), [1, 1])


@pytest.mark.parametrize(
    ("limits", "step"),
    [
        ({}, [8, 6]),
        ({"clip_norm": 5.0}, [4, 3]),
        ({"clip_value": 7.0}, [7, 6]),
        ({"clip_norm": 20.0, "clip_value": 100.0}, [8, 6]),
    ],
)
def test_limits_of_gradients(limits, step):
    settings = hparams.Optimization(optimizer="sgd", learning_rate=1.0, **limits)
    first, second = tf.Variable(0.0), tf.Variable(0.0)
    optimizers.make(settings).apply_gradients(
        [(tf.constant(8.0), first), (tf.constant(6.0), second)]
    )
    assert [-first.numpy(), -second.numpy()] == pytest.approx(step)


def test_an_optimizer_of_tensorflow_1(tmp_path):
    train = tf.compat.v1.train
    model = _estimator(
        tmp_path, lambda: train.MomentumOptimizer(0.05, 0.9), save_summary_steps=1
    )
    model.train(_input_fn(16), max_steps=5)
    assert model.get_variable_value("global_step") == 5
    assert set(_summaries(tmp_path, "learning_rate").values()) == {np.float32(0.05)}


def test_nothing_to_train(tmp_path):
    def build():
        return tf_keras.Sequential([_L.Lambda(lambda features: features["x"][:, :1])])

    with pytest.raises(UserError, match="no trainable variable"):
        _estimator(tmp_path, hparams.Custom(), build).train(_input_fn(8), max_steps=1)


# --- accumulation ----------------------------------------------------------------

_ACCUMULATED = {
    "sgd": {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.05},
    "adam": {"optimizer": "adam", "warmup_steps": 3, "learning_rate": 0.05},
    "lion": {"optimizer": "lion", "weight_decay": 0.1, "learning_rate": 0.01},
    "clipped": {"optimizer": "sgd", "clip_norm": 0.5, "learning_rate": 0.5, "l2": 0.01},
}


@pytest.mark.parametrize("settings", _ACCUMULATED.values(), ids=_ACCUMULATED)
def test_accumulated_steps_equal_one_of_a_larger_batch(tmp_path, settings):
    def build():
        # Of rows that a batch leaves out, Keras' momentum stays as it is, while an
        # accumulated gradient is dense: with momentum the two do differ.
        return _network(rows="momentum" not in settings)

    whole = _estimator(tmp_path / "whole", hparams.Custom(**settings), build)
    whole.train(_input_fn(24), max_steps=6)
    small = hparams.Custom(**settings, accumulate=3)
    parts = _estimator(tmp_path / "parts", small, build, save_summary_steps=1)
    # The same rows go on: 6 batches of 8 are one pass over the 48.
    for max_steps in (12, 18):
        parts.train(_input_fn(8), max_steps=max_steps)
    assert parts.get_variable_value("global_step") == 18
    assert parts.get_variable_value("training/updates") == 6
    found, wanted = _weights(parts), _weights(whole)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, atol=2e-6, err_msg=name)
    rates = _summaries(tmp_path / "parts", "learning_rate")
    schedule = schedules.Schedule(small)
    for step, rate in rates.items():
        assert rate == pytest.approx(float(schedule((step - 1) // 3)), rel=1e-5)


def test_a_checkpoint_between_two_updates_is_whole(tmp_path):
    settings = hparams.Custom(learning_rate=0.05, accumulate=4)
    whole = _estimator(tmp_path / "whole", settings)
    whole.train(_input_fn(_ROWS), max_steps=8)
    parts = _estimator(tmp_path / "parts", settings)
    for max_steps in (2, 7, 8):
        parts.train(_input_fn(_ROWS), max_steps=max_steps)
    for name, value in _weights(whole).items():
        np.testing.assert_allclose(_weights(parts)[name], value, atol=1e-6)


# --- penalties -------------------------------------------------------------------


def test_penalties_of_all_but_biases(tmp_path):
    def build():
        return tf_keras.Sequential(
            [
                _L.Lambda(lambda features: features["x"]),
                _L.Dense(
                    1,
                    kernel_initializer=tf_keras.initializers.Constant([[1], [-2], [3]]),
                    bias_initializer="ones",
                    kernel_regularizer=tf_keras.regularizers.L1(0.5),
                ),
            ]
        )

    settings = hparams.Custom(l1=0.01, l2=0.1, learning_rate=1e-12)
    model = _estimator(tmp_path, settings, build)
    model.train(_input_fn(8), max_steps=1)
    metrics = model.evaluate(_input_fn(_ROWS), steps=1)
    penalty = 0.01 * 6 + 0.1 * 14 + 0.5 * 6
    assert metrics["regularization_loss"] == pytest.approx(penalty, rel=1e-5)
    assert metrics["loss"] == pytest.approx(metrics["average_loss"] + penalty, rel=1e-5)
