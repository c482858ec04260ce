"""Trains a registered model on a dataset: records as they are read, or from memory.

Arguments: OUTPUT DATASET MODEL SOURCE EPOCHS, where SOURCE is records or memory. From
memory means the same batches, parsed and cached during an epoch that does not count;
a warm-up epoch does not count for records either.
"""

from __future__ import annotations

import dataclasses

from benchmarks import measure

_LABEL = "arr_delay"
_BATCH_SIZE = 512


def main(output: str, dataset_dir: str, model: str, source: str, epochs: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.load_tensorflow(0)
        from benchmarks import step_clock
        from input_fns import records
        from model_fns import registry
        from pipeline import estimators, types
        from pipeline.compat import estimator, tf
        from pipeline.dataset import open_dataset
        from pipeline.preprocess import constants_files

        import_seconds = elapsed()
    dataset = open_dataset(dataset_dir)
    # Made for measuring preprocess, it declares no label.
    declaration = dataclasses.replace(
        dataset.declaration,
        features={
            name: feature
            for name, feature in dataset.declaration.features.items()
            if name != _LABEL
        },
        label=types.Label(_LABEL),
    )
    shards = dataset.shards("train")
    read = records.train_input_fn(
        estimators.to_records(shards),
        declaration,
        records.TrainInput(_BATCH_SIZE, shuffle_rows=50_000, seed=1),
    )
    epoch = shards.rows // _BATCH_SIZE

    def from_memory():
        return read().take(epoch).cache().repeat().prefetch(tf.data.AUTOTUNE)

    entry = registry.find(model)
    trained = entry.builder()(
        declaration,
        constants_files.read_constants(dataset_dir),
        entry.hparams(),
        estimator.RunConfig(output, tf_random_seed=1, save_checkpoints_steps=10**9),
    )
    clock = step_clock.StepClock(warm_up=epoch)
    trained.train(
        from_memory if source == "memory" else read,
        steps=epoch * (1 + int(epochs)),
        hooks=[step_clock.hook(clock)],
    )
    measure.report(clock.steps * _BATCH_SIZE, clock.seconds, import_seconds, 0)
