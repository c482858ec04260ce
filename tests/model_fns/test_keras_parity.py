"""The same network, weights and data under our adapter and under Keras' own training.

Losses and learning rates of 20 steps, the weights after them, and the metrics of an
evaluation must agree.
"""

from __future__ import annotations

import dataclasses
import glob

import numpy as np
import pytest

from model_fns import adapter, compiled, hparams, optimizers
from pipeline.compat import estimator, tf, tf_keras

_L = tf_keras.layers
_STEPS = 20
_BATCH = 16


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(2, 3, [_STEPS * _BATCH, 3]).astype(np.float32)
    y = (x[:, 0] + random.normal(size=len(x)) > 2).astype(np.int64)
    return x, y, random.uniform(0.5, 2, len(x)).astype(np.float32)


class _Table(_L.Layer):
    """An embedding, whose gradient is sparse."""

    def build(self, shape):
        self._table = self.add_weight(
            "table", [4, 3], initializer=tf_keras.initializers.GlorotUniform(5)
        )

    def call(self, x):
        ids = tf.cast(tf.floor(tf.abs(x[:, 0])), tf.int32) % 4
        return x + tf.gather(self._table, ids)


def _network() -> tf_keras.Model:
    def dense(width, seed, **settings):
        initializer = tf_keras.initializers.GlorotUniform(seed)
        return _L.Dense(width, kernel_initializer=initializer, **settings)

    return tf_keras.Sequential(
        [
            _L.Lambda(lambda features: features["x"]),
            _Table(),
            _L.BatchNormalization(momentum=0.9),
            dense(5, 1, activation="tanh", kernel_regularizer="l2"),
            dense(1, 2),
        ]
    )


@dataclasses.dataclass(frozen=True)
class _Run:
    losses: list[float]
    rates: list[float]
    weights: list[np.ndarray]
    evaluated: list[float]
    predictions: np.ndarray


def _keras_run(optimizer) -> _Run:
    """Trains batch by batch under Keras.

    All of it before an Estimator runs: building a model in a graph changes the bases
    of Keras' classes, and models from before no longer work.
    """
    x, y, weights = _data()
    model = _network()
    model.compile(
        optimizer,
        tf_keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[tf_keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    losses, rates = [], []
    for start in range(0, len(x), _BATCH):
        part = slice(start, start + _BATCH)
        rate = optimizer.learning_rate
        rates.append(float(rate(optimizer.iterations) if callable(rate) else rate))
        loss, _ = model.train_on_batch(
            {"x": x[part]}, y[part], weights[part], reset_metrics=True
        )
        losses.append(loss)
    evaluated = model.evaluate(
        {"x": x}, y, batch_size=_BATCH, sample_weight=weights, verbose=0
    )
    predictions = model.predict({"x": x}, verbose=0)[:, 0]
    return _Run(losses, rates, model.get_weights(), evaluated, predictions)


class _LossHook(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.losses: list[float] = []

    def begin(self):
        self._loss = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)[-1]

    def before_run(self, run_context):
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


def _input_fn(weighted: bool = True):
    x, y, weights = _data()
    features = {"x": x, "w": weights} if weighted else {"x": x}
    return tf.data.Dataset.from_tensor_slices((features, y)).batch(_BATCH)


def _rates(directory) -> list[float]:
    found = {}
    for path in sorted(glob.glob(f"{directory}/events*")):
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                if value.tag == "learning_rate":
                    found[event.step] = (
                        tf.make_ndarray(value.tensor).item()
                        if (value.HasField("tensor"))
                        else value.simple_value
                    )
    return [rate for _, rate in sorted(found.items())]


def _estimator_run(model_fn, directory):
    config = estimator.RunConfig(
        model_dir=str(directory), tf_random_seed=1, save_summary_steps=1
    )
    model = estimator.Estimator(model_fn, config=config)
    hook = _LossHook()
    model.train(_input_fn, hooks=[hook], max_steps=_STEPS)
    return model, hook.losses


def _assert_same_weights(model: estimator.Estimator, wanted: list[np.ndarray]):
    found = [
        model.get_variable_value(name)
        for name in model.get_variable_names()
        if not name.startswith("training/") and "/" in name
    ]
    for weight in wanted:
        close = [
            value.shape == weight.shape and np.allclose(value, weight, atol=1e-5)
            for value in found
        ]
        assert any(close), weight


class _Halving(tf_keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.05 * 0.9 ** tf.cast(step, tf.float32)

    def get_config(self):
        return {}


_legacy = tf_keras.optimizers.legacy
_OPTIMIZERS = {
    "sgd": lambda: _legacy.SGD(0.05),
    "sgd schedule": lambda: _legacy.SGD(_Halving()),
    "adam": lambda: _legacy.Adam(0.02),
    "adam schedule": lambda: _legacy.Adam(_Halving()),
    "momentum, clipped": lambda: _legacy.SGD(0.05, 0.9, global_clipnorm=0.3),
    "new adam": lambda: tf_keras.optimizers.Adam(0.02),
    "new sgd, clipped": lambda: tf_keras.optimizers.SGD(0.05, global_clipnorm=0.3),
}


@pytest.mark.parametrize("make_optimizer", _OPTIMIZERS.values(), ids=_OPTIMIZERS)
def test_a_compiled_model(tmp_path, make_optimizer):
    def build():
        model = _network()
        model.compile(
            make_optimizer(),
            tf_keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=[tf_keras.metrics.BinaryAccuracy(threshold=0.0)],
        )
        return model

    keras = _keras_run(make_optimizer())
    model_fn = compiled.model_fn_from_compiled(build, "w", seed=1)
    model, found = _estimator_run(model_fn, tmp_path)
    np.testing.assert_allclose(found, keras.losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(_rates(tmp_path), keras.rates, rtol=1e-5)
    _assert_same_weights(model, keras.weights)
    loss, accuracy = keras.evaluated
    metrics = model.evaluate(_input_fn)
    assert metrics["loss"] == pytest.approx(loss, rel=1e-5)
    assert metrics["binary_accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert metrics["global_step"] == _STEPS
    predictions = [row["predictions"][0] for row in model.predict(_input_fn)]
    # The older Adam rounds a little otherwise than the newer one.
    np.testing.assert_allclose(predictions, keras.predictions, atol=5e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "sgd", "learning_rate": 0.05},
        {"optimizer": "sgd", "schedule": "cosine", "decay_steps": 15},
        {"optimizer": "adam", "learning_rate": 0.02, "clip_norm": 0.5},
        {"optimizer": "adam", "warmup_steps": 8, "learning_rate": 0.05},
    ],
    ids=["sgd", "sgd schedule", "adam clipped", "adam warm-up"],
)
def test_a_model_with_a_head(tmp_path, settings):
    settings = hparams.Custom(**settings)
    keras = _keras_run(optimizers.make(settings))
    head = estimator.BinaryClassHead(weight_column="w")
    model_fn = adapter.model_fn_from_keras(
        lambda: _WithoutWeight(_network()), settings, head
    )
    model, found = _estimator_run(model_fn, tmp_path)
    np.testing.assert_allclose(found, keras.losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(_rates(tmp_path), keras.rates, rtol=1e-5)
    _assert_same_weights(model, keras.weights)


class _WithoutWeight(tf_keras.Model):
    """Gives a Sequential model the one input that it takes."""

    def __init__(self, model):
        super().__init__()
        self._model = model

    def call(self, features, training=False):
        return self._model({"x": features["x"]}, training=training)


class _Subclass(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self._dense = _L.Dense(1, kernel_initializer="zeros")

    def call(self, features):
        return self._dense(features["x"])


def _trained_subclass() -> tf_keras.Model:
    """A model that brings weights along, as one that was loaded does."""
    model = _Subclass()
    model.compile(_legacy.SGD(0.0), "mse")
    model({"x": np.zeros([1, 3], np.float32)})
    if tf.executing_eagerly():
        model.set_weights([np.full([3, 1], 0.5, np.float32), np.float32([2.0])])
    return model


def test_the_weights_of_a_subclassed_model_are_kept(tmp_path):
    model_fn = compiled.model_fn_from_compiled(_trained_subclass, None, seed=1)
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(lambda: _input_fn(weighted=False), max_steps=2)
    row = next(model.predict(lambda: _input_fn(weighted=False)))
    assert row["predictions"][0] == pytest.approx(
        0.5 * _data()[0][0].sum() + 2, abs=1e-5
    )


def test_model_to_estimator_drops_them(tmp_path):
    """Why the adapter is used instead."""
    with pytest.raises(ValueError, match="not supported with subclassed models"):
        tf_keras.estimator.model_to_estimator(_trained_subclass())
    model = tf_keras.estimator.model_to_estimator(
        _trained_subclass(), model_dir=str(tmp_path), checkpoint_format="saver"
    )
    model.train(lambda: _input_fn(weighted=False), max_steps=2)
    kernels = [n for n in model.get_variable_names() if n.endswith("kernel")]
    assert not model.get_variable_value(kernels[0]).any()


def test_training_that_goes_on_keeps_its_own_weights(tmp_path):
    """The weights that a model brings along are for the first step only."""

    def build():
        model = _trained_subclass()
        model.compile(_legacy.SGD(0.01), "mse")
        return model

    for steps in (5, 10):
        model_fn = compiled.model_fn_from_compiled(build, None, seed=1)
        model = estimator.Estimator(model_fn, str(tmp_path / "parts"))
        model.train(lambda: _input_fn(weighted=False).take(5).repeat(), max_steps=steps)
    whole = estimator.Estimator(model_fn, str(tmp_path / "whole"))
    whole.train(lambda: _input_fn(weighted=False).take(5).repeat(), max_steps=10)
    for name in whole.get_variable_names():
        np.testing.assert_allclose(
            model.get_variable_value(name), whole.get_variable_value(name), rtol=1e-5
        )
