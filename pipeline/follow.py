"""Follows a training in another process: evaluates each of its checkpoints."""

from __future__ import annotations

import time

from pipeline import checkpoints, done, evaluate, model_dir
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.estimator_options import DEFAULT_OPTIONS, EstimatorOptions
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.serving import ServingFlags
from pipeline.flags.slicing import DEFAULT as DEFAULT_SLICING
from pipeline.flags.slicing import SlicingFlags
from pipeline.manifest import Manifest
from pipeline.types import ExitCode, UserError

_POLL_SECONDS = 0.5


def _evaluate(
    directory: str,
    model_directory: str,
    dataset: Dataset,
    split: str,
    step: int,
    console: Console,
    options: EstimatorOptions,
    reading: InputFlags,
    slicing: SlicingFlags,
) -> Manifest | None:
    """Returns the evaluation; None where training has removed the checkpoint."""
    try:
        return evaluate.run(
            directory,
            model_dir.open_model(model_directory),
            dataset,
            split,
            console,
            str(step),
            options,
            reading,
            slicing,
        )
    except UserError:
        if any(c.step == step for c in checkpoints.listed(model_directory)):
            raise
        return None


def run(
    directory: str,
    model_directory: str,
    dataset: Dataset,
    settings: ServingFlags,
    console: Console,
    options: EstimatorOptions = DEFAULT_OPTIONS,
    reading: InputFlags = DEFAULT_INPUT,
    slicing: SlicingFlags = DEFAULT_SLICING,
) -> Manifest:
    """Evaluates every new checkpoint until the training has ended.

    The training has ended when it has written its marker `DONE`: at max_steps, but also
    when it stopped early, was paused or failed.

    Args:
      directory: Gets the metrics of the newest evaluation.
      model_directory: The model directory; it need not exist yet.
      dataset: Where the rows are.
      settings: The flags.
      console: Where to print.
      options: Further metrics, and how numbers are computed.
      reading: The input flags.
      slicing: By which columns metrics are given as well.

    Returns:
      The last evaluation.

    Raises:
      UserError: No checkpoint came in time (TIMED_OUT), or the training failed
        (BAD_DATA); further as `evaluate.run`.
    """
    last, last_step = None, 0
    deadline = time.monotonic() + settings.eval_timeout_secs
    while True:
        # Read first: with the marker there, the list of checkpoints is final.
        ended = done.read(model_directory)
        for checkpoint in checkpoints.listed(model_directory):
            if checkpoint.step <= last_step:
                continue
            last_step = checkpoint.step
            found = _evaluate(
                directory,
                model_directory,
                dataset,
                settings.eval_split,
                checkpoint.step,
                console,
                options,
                reading,
                slicing,
            )
            if found is not None:
                last = found
                loss = found.results["metrics"]["loss"]
                console.progress(f"evaluate: step {last_step:,}: loss {loss:.6g}")
            deadline = time.monotonic() + settings.eval_timeout_secs
        if ended is not None:
            return _end(ended, last, model_directory)
        if time.monotonic() > deadline:
            raise UserError(
                f"evaluate: no new checkpoint in {model_directory} for"
                f" --eval_timeout_secs={settings.eval_timeout_secs} (the last one is of"
                f" step {last_step:,}), and its training has not ended; is it running?",
                ExitCode.TIMED_OUT,
            )
        time.sleep(_POLL_SECONDS)


def _end(ended: done.Done, last: Manifest | None, model_directory: str) -> Manifest:
    if ended.failure is not None:
        raise UserError(
            f"evaluate: the training in {model_directory} failed: {ended.failure}",
            ExitCode.BAD_DATA,
        )
    if last is None:
        raise UserError(
            f"evaluate: the training in {model_directory} has ended, and there is no"
            " checkpoint to evaluate"
        )
    return last
