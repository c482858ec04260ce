"""What happens after each evaluation of a training, as Exporters.

An Exporter is the Estimator's way to act on an evaluation, in the process that evaluates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from export import exporters
from pipeline import best, evaluations, files
from pipeline.compat import estimator
from pipeline.console import Console
from pipeline.evaluations import Evaluation
from pipeline.train_plan import Plan
from pipeline.version_writer import VersionWriter

_WAIT_SECONDS = 600


def _numbers(metrics: Mapping) -> dict[str, float]:
    return {
        name: int(value) if name == "global_step" else float(value)
        for name, value in metrics.items()
    }


class _KeepBest(estimator.Exporter):
    """Keeps the best checkpoint aside."""

    name = "keep_best"

    def __init__(self, plan: Plan, console: Console):
        self._plan = plan
        self._console = console

    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        del estimator, export_path, is_the_final_export
        model, order = self._plan.model, self._plan.best
        metrics = _numbers(eval_result)
        if not best.is_better(model.directory, metrics, order):
            return
        best.keep(model, checkpoint_path, metrics, order)
        self._console.progress(
            f"train: best so far at step {metrics['global_step']:,}: {order.metric}"
            f" {order.value(metrics):.6g}"
        )


class _Record(estimator.Exporter):
    """Writes the evaluation down, as a sign that all that follows from it is done."""

    name = "record"

    def __init__(self, directory: str):
        self._directory = directory

    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        del estimator, export_path, checkpoint_path, is_the_final_export
        metrics = _numbers(eval_result)
        step = metrics.pop("global_step")
        evaluations.record(self._directory, Evaluation(step, metrics))


def make_exporters(plan: Plan, console: Console) -> list[estimator.Exporter]:
    """Returns the exporters of a training, in the order in which they must run."""
    directory = plan.model.directory
    keep = plan.settings.evaluation.keep_exports
    write = VersionWriter(plan.model, keep, console)

    def find_best() -> str | None:
        found = best.read(directory)
        return found and found.path

    def write_best(export_dir: str, checkpoint: str) -> None:
        # It may be of an earlier training, with constants of its own.
        VersionWriter(best.open_model(directory), keep, console)(export_dir, checkpoint)

    kinds = {
        "best": lambda: exporters.BestExporter(write_best, find_best),
        "latest": lambda: exporters.LatestExporter(write),
        "final": lambda: exporters.FinalExporter(write),
    }
    asked = [kinds[name]() for name in plan.settings.evaluation.exporters]
    return [_KeepBest(plan, console), *asked, _Record(directory)]


def evaluate(
    trained: estimator.Estimator, spec: estimator.EvalSpec, checkpoint: str
) -> dict[str, float]:
    """Returns the metrics of a checkpoint, as train_and_evaluate finds them."""
    return trained.evaluate(
        spec.input_fn,
        steps=spec.steps,
        hooks=spec.hooks,
        name=spec.name,
        checkpoint_path=checkpoint,
    )


def export(
    trained: estimator.Estimator,
    spec: estimator.EvalSpec,
    checkpoint: str,
    metrics: Mapping[str, float],
    is_final: bool,
) -> None:
    """Runs the exporters of a spec, each of which may have run for this checkpoint.

    For the cases that train_and_evaluate leaves out: a checkpoint whose evaluation a
    kill prevented, the end of a training that stops before max_steps or had nothing
    left to do, and clusters.

    In a cluster the leader and the evaluator may get here at the same time.

    Raises:
      UserError: The other one takes too long.
    """
    shared = os.path.join(trained.model_dir, evaluations.FILE_NAME)
    with files.locked(shared, _WAIT_SECONDS):
        for exporter in spec.exporters:
            path = os.path.join(trained.model_dir, "export", exporter.name)
            exporter.export(trained, path, checkpoint, metrics, is_final)
