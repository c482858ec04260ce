"""The adapter from Keras models to a model_fn, through real Estimators."""

from __future__ import annotations

import glob
import os

import numpy as np
import pytest

from model_fns import adapter
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError

_L = tf_keras.layers
_OPTIMIZERS = tf_keras.optimizers.legacy


def _data(rows: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """x with mean 5 and sd 1; y with noise, so that no model fits it."""
    random = np.random.default_rng(0)
    x = random.normal(5, 1, rows).astype(np.float32)
    return x, (2 * (x - 5) + random.normal(0, 0.5, rows)).astype(np.float32)


def _input_fn(x, y, batch: int | None = None, repeat: bool = True):
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        dataset = dataset.repeat() if repeat else dataset
        return dataset.batch(batch or len(x))

    return input_fn


def _estimator(
    directory, build_model, make_optimizer, head=None
) -> estimator.Estimator:
    model_fn = adapter.model_fn_from_keras(
        build_model, make_optimizer, head or estimator.RegressionHead()
    )
    config = estimator.RunConfig(model_dir=str(directory), tf_random_seed=1)
    return estimator.Estimator(model_fn, config=config)


def _variables(model: estimator.Estimator) -> dict[str, np.ndarray]:
    """The model's variables by the last two parts of their names."""
    return {
        "/".join(name.split("/")[-2:]): model.get_variable_value(name)
        for name in model.get_variable_names()
        if not name.startswith("training/")
    }


class _LossHook(tf.compat.v1.train.SessionRunHook):
    """Notes the loss of each step."""

    def __init__(self):
        self.losses: list[float] = []

    def before_run(self, run_context):
        loss = tf.compat.v1.losses.get_losses()[-1]
        return tf.compat.v1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


class _Activity(_L.Layer):
    """Adds a loss that depends on its inputs."""

    def call(self, inputs):
        self.add_loss(0.01 * tf.reduce_mean(tf.square(inputs)))
        return inputs


def _layers() -> list[_L.Layer]:
    """A stack with every thing that a plain model_fn would lose."""
    initial = tf_keras.initializers.Constant([[0.3, -0.2, 0.5]])
    return [
        _L.BatchNormalization(momentum=0.9, name="norm"),
        _L.Dense(
            3,
            "tanh",
            kernel_initializer=initial,
            kernel_regularizer=tf_keras.regularizers.L2(0.1),
            name="hidden",
        ),
        _Activity(name="activity"),
        _L.Dense(1, kernel_initializer="ones", name="logits"),
    ]


class _Column(_L.Layer):
    """From a dict of columns to [batch, 1]."""

    def call(self, raw):
        return raw["x"][:, tf.newaxis]


def _sequential() -> tf_keras.Model:
    return tf_keras.Sequential([_Column(), *_layers()])


def _functional() -> tf_keras.Model:
    inputs = {"x": tf_keras.Input([], name="x")}
    hidden = _L.Reshape([1])(inputs["x"])
    for layer in _layers():
        hidden = layer(hidden)
    return tf_keras.Model(inputs, hidden)


class _Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__(name="subclassed")
        self.stack = _layers()

    def call(self, raw, training=False):
        hidden = raw["x"][:, tf.newaxis]
        for layer in self.stack:
            takes_training = isinstance(layer, _L.BatchNormalization)
            hidden = layer(hidden, **({"training": training} if takes_training else {}))
        return hidden


class _Nested(tf_keras.Model):
    def __init__(self):
        super().__init__(name="nested")
        self.inner = _functional()

    def call(self, raw, training=False):
        return self.inner({"x": raw["x"]}, training=training)


KINDS = {
    "sequential": _sequential,
    "functional": _functional,
    "subclassed": _Subclassed,
    "functional in subclassed": _Nested,
}


def _by_hand(build_model, optimizer, x, y, steps: int):
    """Trains eagerly; returns variables as `_variables` does, and the losses."""
    model = build_model()
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            logits = model({"x": tf.constant(x)}, training=True)
            error = tf.reduce_mean(tf.square(logits[:, 0] - y))
            loss = error + tf.add_n(model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        losses.append(float(loss))
    names = ("/".join(v.name[:-2].split("/")[-2:]) for v in model.variables)
    return dict(zip(names, (v.numpy() for v in model.variables), strict=True)), losses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 3])
def test_training_is_what_keras_would_do(tmp_path, kind, steps):
    """Gradients, regularisation, added losses and moving averages, step by step."""
    x, y = _data(16)
    hook = _LossHook()
    model = _estimator(tmp_path, KINDS[kind], lambda: _OPTIMIZERS.Adam(0.05))
    model.train(_input_fn(x, y), max_steps=steps, hooks=[hook])
    wanted, losses = _by_hand(KINDS[kind], _OPTIMIZERS.Adam(0.05), x, y, steps)
    found = _variables(model)
    assert found.pop("global_step") == steps
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(
            found[name], value, rtol=1e-5, atol=1e-6, err_msg=name
        )
    np.testing.assert_allclose(hook.losses, losses, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_loss_holds_layer_losses_too(tmp_path, kind):
    x, y = _data(16)
    model = _estimator(tmp_path, KINDS[kind], lambda: _OPTIMIZERS.SGD(0.0))
    model.train(_input_fn(x, y), max_steps=1)
    metrics = model.evaluate(_input_fn(x, y, repeat=False))
    kernel = np.float32([0.3, -0.2, 0.5])
    penalty = 0.1 * np.sum(np.square(kernel))
    assert metrics["loss"] - metrics["average_loss"] > penalty
    assert metrics["loss"] - metrics["average_loss"] < penalty + 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_batch_normalization_learns_its_averages(tmp_path, kind):
    x, y = _data(256)
    hook = _LossHook()
    model = _estimator(tmp_path, KINDS[kind], lambda: _OPTIMIZERS.Adam(0.02))
    model.train(_input_fn(x, y), max_steps=300, hooks=[hook])
    found = _variables(model)
    assert found["norm/moving_mean"][0] == pytest.approx(5, abs=0.5)
    assert found["norm/moving_variance"][0] == pytest.approx(np.var(x), rel=0.05)
    loss = model.evaluate(_input_fn(x, y, repeat=False))["loss"]
    assert loss == pytest.approx(hook.losses[-1], rel=0.2)


class _Rising(tf_keras.optimizers.schedules.LearningRateSchedule):
    """0.001 times the step."""

    def __call__(self, step):
        return 0.001 * tf.cast(step, tf.float32)


def _one_weight() -> tf_keras.Model:
    """A model whose loss on x = 1, y = 0 is the square of its weight."""
    return tf_keras.Sequential(
        [_Column(), _L.Dense(1, use_bias=False, kernel_initializer="ones", name="one")]
    )


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda: _OPTIMIZERS.Adam(0.01),
        lambda: _OPTIMIZERS.SGD(0.01),
        lambda: _OPTIMIZERS.SGD(_Rising()),
        lambda: _OPTIMIZERS.SGD(0.01, momentum=0.9),
    ],
    ids=["adam", "sgd", "schedule", "momentum"],
)
def test_training_stops_at_max_steps_and_goes_on_from_there(tmp_path, make_optimizer):
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    for max_steps in (20, 40):
        model = _estimator(tmp_path, _one_weight, make_optimizer)
        model.train(_input_fn(ones, zeros), max_steps=max_steps)
        assert _variables(model)["global_step"] == max_steps
    steps = {
        int(os.path.basename(path).split("-")[1].split(".")[0])
        for path in glob.glob(str(tmp_path / "model.ckpt-*.index"))
    }
    assert steps == {0, 20, 40}


def test_a_learning_rate_schedule_reads_the_global_step(tmp_path):
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    for max_steps in (20, 40):
        model = _estimator(tmp_path, _one_weight, lambda: _OPTIMIZERS.SGD(_Rising()))
        model.train(_input_fn(ones, zeros), max_steps=max_steps)
        weight = np.prod([1 - 2 * 0.001 * step for step in range(max_steps)])
        assert _variables(model)["one/kernel"] == pytest.approx(weight, rel=1e-4)


def test_a_learning_rate_given_as_a_function_can_be_changed(tmp_path):
    """A number would become a variable, which the checkpoint sets back."""
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    for max_steps, rate in ((1, 0.1), (2, 0.25)):
        model = _estimator(
            tmp_path, _one_weight, lambda rate=rate: _OPTIMIZERS.SGD(lambda: rate)
        )
        model.train(_input_fn(ones, zeros), max_steps=max_steps)
    assert _variables(model)["one/kernel"] == pytest.approx(0.8 * 0.5, rel=1e-6)


def test_another_kind_of_optimizer_is_refused(tmp_path):
    model = _estimator(tmp_path, _one_weight, lambda: tf_keras.optimizers.Adam(0.1))
    with pytest.raises(UserError, match=r"legacy\.Adam"):
        model.train(_input_fn(*_data()), max_steps=1)


def test_dropout_works_in_training_only(tmp_path):
    def build_model():
        return tf_keras.Sequential(
            [
                _Column(),
                _L.Dense(50, kernel_initializer="ones"),
                _L.Dropout(0.5),
                _L.Dense(1, kernel_initializer="ones"),
            ]
        )

    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    hook = _LossHook()
    model = _estimator(tmp_path, build_model, lambda: _OPTIMIZERS.SGD(0.0))
    model.train(_input_fn(ones, zeros), max_steps=5, hooks=[hook])
    assert len(set(hook.losses)) == 5
    for _ in range(2):
        found = model.predict(_input_fn(ones, zeros, repeat=False))
        assert [p["predictions"][0] for p in found] == [50] * 4
    metrics = model.evaluate(_input_fn(ones, zeros, repeat=False))
    assert metrics["average_loss"] == pytest.approx(2500)


def test_classes_and_weights_through_a_head(tmp_path):
    def build_model():
        return tf_keras.Sequential([_Column(), _L.Dense(3)])

    def input_fn():
        x = np.tile(np.float32([-2, 0, 2]), 20)
        features = {"x": x, "w": np.tile(np.float32([1, 2, 0]), 20)}
        labels = np.tile([b"low", b"mid", b"high"], 20)
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(60)

    model = _estimator(
        tmp_path,
        build_model,
        lambda: _OPTIMIZERS.Adam(0.1),
        estimator.MultiClassHead(
            3, weight_column="w", label_vocabulary=["low", "mid", "high"]
        ),
    )
    model.train(lambda: input_fn().repeat(), max_steps=60)
    classes = [p["classes"][0] for p in model.predict(input_fn)]
    assert classes[:2] == [b"low", b"mid"]
    assert b"high" not in classes
    assert model.evaluate(input_fn)["accuracy"] == pytest.approx(1.0)
