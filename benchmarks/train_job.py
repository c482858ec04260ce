"""Trains a model for some steps, on rows of a dataset or of memory.

Arguments: OUTPUT DATASET MODEL ROWS STEPS; ROWS is dataset, memory or synthetic.
"""

from __future__ import annotations

from benchmarks import flags, measure, step_clock

_WARM_UP_STEPS = 50
_BATCH_SIZE = 512


def main(output: str, dataset_dir: str, model: str, rows: str, steps: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.set_verbosity(0)
        environment.load_tensorflow(0)
        from pipeline import estimators, model_dir, train_inputs
        from pipeline.console import Console
        from pipeline.dataset import open_dataset
        from pipeline.flags.input import InputFlags

        import_seconds = elapsed()

    settings = {
        "dataset": InputFlags(),
        "memory": InputFlags(cache="memory"),
        "synthetic": InputFlags(input_fn="synthetic"),
    }[rows]
    training = flags.training(f"--model={model}", f"--batch_size={_BATCH_SIZE}")
    dataset = open_dataset(dataset_dir)
    asked = model_dir.asked_training(training, dataset.manifest.fingerprint, settings)
    planned = model_dir.TrainedModel(
        output, asked, dataset.declaration, dataset.constants()
    )
    trained = estimators.make_estimator(
        planned, save_checkpoints_steps=None, save_checkpoints_secs=10**6
    )
    clock = step_clock.StepClock(_WARM_UP_STEPS)
    input_fn = train_inputs.train_input_fn(
        dataset, planned, training, settings, 0, Console(-1)
    )
    trained.train(
        input_fn, hooks=[step_clock.hook(clock)], steps=_WARM_UP_STEPS + int(steps)
    )
    measure.report(clock.steps * _BATCH_SIZE, clock.seconds, import_seconds, 0)
