"""Trains one network from memory, under an Estimator or under Keras `fit`.

Arguments: OUTPUT WAY NETWORK STEPS BATCH_SIZE, where WAY is estimator or fit, or
estimator-50 or fit-50 for 50 steps a call (`steps_per_execution=50`), and NETWORK is one of NETWORKS. Steps before a warm-up are
not measured, so neither building the graph nor tracing counts.
"""

from __future__ import annotations

from benchmarks import measure, step_clock

# Ids of a feature, width of its vectors, widths of the layers.
NETWORKS = {
    "large": (260_000, 16, (256, 128, 64)),
    "small": (1_000, 8, (64, 32)),
}
_FIELDS = 10
_NUMBERS = 13
_ROWS = 100_000
_WARM_UP_STEPS = 100
_SEED = 1


def _arrays(ids: int):
    import numpy as np

    random = np.random.default_rng(_SEED)
    features = {
        "ids": random.integers(0, ids, (_ROWS, _FIELDS)),
        "numbers": random.normal(size=(_ROWS, _NUMBERS)).astype(np.float32),
    }
    labels = (features["numbers"][:, 0] > 0).astype(np.float32)[:, np.newaxis]
    return features, labels


def _dataset(arrays, batch_size: int):
    from pipeline.compat import tf

    return (
        tf.data.Dataset.from_tensor_slices(arrays)
        .batch(batch_size, drop_remainder=True)
        .cache()
        .repeat()
        .prefetch(tf.data.AUTOTUNE)
    )


def _network(ids: int, width: int, hidden: tuple[int, ...]):
    """Returns a function that makes the network."""
    from pipeline.compat import tf_keras

    layers = tf_keras.layers

    def build():
        inputs = {
            "ids": tf_keras.Input([_FIELDS], dtype="int64"),
            "numbers": tf_keras.Input([_NUMBERS]),
        }
        vectors = layers.Flatten()(layers.Embedding(ids, width)(inputs["ids"]))
        value = layers.Concatenate()([vectors, inputs["numbers"]])
        for units in hidden:
            value = layers.Dense(units, activation="relu")(value)
        return tf_keras.Model(inputs, layers.Dense(1)(value))

    return build


def _estimator(
    output, build, arrays, steps: int, batch_size: int, at_once: int
) -> step_clock.StepClock:
    from model_fns import adapter, hparams, step_loop
    from pipeline import computing
    from pipeline.compat import estimator

    clock = step_clock.StepClock(_WARM_UP_STEPS)
    config = estimator.RunConfig(
        model_dir=output, tf_random_seed=_SEED, save_checkpoints_steps=10**9
    )
    # Adam, at the rate that is Keras' default as well.
    model_fn = adapter.model_fn_from_keras(
        build, hparams.Custom(), estimator.BinaryClassHead()
    )
    trained = estimator.Estimator(model_fn, config=config)
    if at_once > 1:
        trained = computing.in_loops(trained, step_loop.StepLoop((at_once,), steps))
    trained.train(
        lambda: _dataset(arrays, batch_size),
        max_steps=steps,
        hooks=[step_clock.hook(clock, at_once)],
    )
    return clock


def _fit(
    build, arrays, steps: int, batch_size: int, at_once: int
) -> step_clock.StepClock:
    from pipeline.compat import tf_keras

    clock = step_clock.StepClock(_WARM_UP_STEPS)

    class Callback(tf_keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            clock.at(batch + 1)

    tf_keras.utils.set_random_seed(_SEED)
    model = build()
    model.compile(
        tf_keras.optimizers.Adam(),
        tf_keras.losses.BinaryCrossentropy(from_logits=True),
        steps_per_execution=at_once,
    )
    model.fit(
        _dataset(arrays, batch_size),
        steps_per_epoch=steps,
        callbacks=[Callback()],
        verbose=0,
    )
    return clock


def main(output: str, way: str, network: str, steps: str, batch_size: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.load_tensorflow(0)
        import_seconds = elapsed()
    ids, width, hidden = NETWORKS[network]
    arrays = _arrays(ids)
    build = _network(ids, width, hidden)
    kind, _, at_once = way.partition("-")
    how = (int(steps), int(batch_size), int(at_once or 1))
    if kind == "estimator":
        clock = _estimator(output, build, arrays, *how)
    else:
        clock = _fit(build, arrays, *how)
    rows = clock.steps * int(batch_size)
    measure.report(rows, clock.seconds, import_seconds, 0)
