"""Reads a dataset's train split as training does, and counts the rows.

Arguments: OUTPUT DATASET EPOCHS
"""

from __future__ import annotations

from benchmarks import measure


def main(output: str, dataset_dir: str, epochs: str) -> None:
    del output  # Nothing is written.
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.load_tensorflow(0)
        from input_fns import records
        from pipeline import estimators
        from pipeline.dataset import open_dataset

        import_seconds = elapsed()
    dataset = open_dataset(dataset_dir)
    shards = dataset.shards("train")
    options = records.TrainInput(512, 50_000, seed=1)
    read = records.train_input_fn(
        estimators.to_records(shards), dataset.declaration, options
    )
    batches = shards.rows * int(epochs) // options.batch_size
    with measure.stopwatch() as elapsed:
        for _ in read().take(batches):
            pass
        seconds = elapsed()
    size = sum(entry["bytes"] for entry in dataset.manifest.results["shards"]["train"])
    rows = batches * options.batch_size
    measure.report(rows, seconds, import_seconds, size * rows // shards.rows)
