"""A window's dataset into a candidate: trained, exported and judged."""

from __future__ import annotations

import dataclasses
from typing import Any

from pipeline import evaluate, export_model, files, model_dir, train, train_plan
from pipeline.dataset import Dataset
from pipeline.invocation import Invocation
from pipeline.model_dir import TrainedModel
from pipeline.retraining import judging, verdict
from pipeline.retraining.layout import Attempt, Layout
from pipeline.retraining.lock import Held
from pipeline.retraining.registry import Published, Registry
from pipeline.retraining.verdict import Serving, Verdict
from pipeline.retraining.window import JUDGED
from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate that was judged.

    Attributes:
      directory: The exported version.
      checkpoint: Digest of its checkpoint.
      export: Fingerprint of the export.
      global_step: Its step.
      model: The model directory's content.
      verdict: What was decided.
      evidence: On what.
    """

    directory: str
    checkpoint: str
    export: str
    global_step: int
    model: TrainedModel
    verdict: Verdict
    evidence: verdict.Evidence


def training_flags(call: Invocation, champion: Published | None, layout: Layout):
    """Returns the flags of the training; it may begin with the champion's weights."""
    training = dataclasses.replace(call.training, on_change="stop")
    if call.retraining.start != "champion" or champion is None:
        return training
    source = layout.attempt_of(champion.attempt).model
    if not model_dir.has_checkpoint(source):
        raise UserError(
            f"--start_from=champion: the model of version {champion.version} is not in"
            f" {source} any more; give --start_from=scratch once"
        )
    warm = dataclasses.replace(training.warm_start, source=source)
    return dataclasses.replace(training, warm_start=warm)


def make(
    call: Invocation,
    attempt: Attempt,
    dataset: Dataset,
    champion: Published | None,
    layout: Layout,
    registry: Registry,
    lock: Held,
) -> Candidate:
    """Trains, exports and judges; what is done already is reused.

    Raises:
      UserError: A stage failed, or the lock was lost.
    """
    console, serving = call.console, call.serving
    settings = training_flags(call, champion, layout)
    plan = train_plan.plan(attempt.model, settings, dataset, call.input, call.options)
    train.run(plan, dataset, call.flagfile, console)
    lock.check()
    model = model_dir.open_model(attempt.model)
    # For the model card; the verdict counts for itself.
    evaluate.run(
        attempt.evaluation,
        model,
        dataset,
        JUDGED,
        console,
        serving.checkpoint,
        call.options,
        call.input,
    )
    exported = export_model.run(
        attempt.export,
        model,
        dataset,
        dataclasses.replace(serving, eval_split=JUDGED, keep_versions=1),
        console,
        call.exporting,
        attempt.evaluation,
    )
    lock.check()
    console.progress("judge: candidate and champion on the test days")
    results = exported.manifest.results
    verified = results["verification"]
    evidence = judging.gather(
        dataset,
        exported.directory,
        registry.path(champion.version) if champion else None,
        Serving(verified["rows"], verified["largest_difference"]),
        call.retraining.blessing,
    )
    decided = verdict.decide(evidence, call.retraining.blessing)
    return Candidate(
        exported.directory,
        exported.manifest.inputs["checkpoint"],
        exported.manifest.fingerprint,
        results["global_step"],
        model,
        decided,
        evidence,
    )


def write_verdict(
    attempt: Attempt,
    run_date: str,
    made: Candidate,
    champion: Published | None,
    dataset: Dataset,
) -> dict[str, Any]:
    """Writes the verdict for people and programs; returns what is in the file."""
    value = to_json(run_date, made, champion, dataset)
    files.write_json(attempt.verdict, value)
    return value


def to_json(
    run_date: str, made: Candidate, champion: Published | None, dataset: Dataset
) -> dict[str, Any]:
    evidence, decided = made.evidence, made.verdict
    found = evidence.interval
    days = dataset.manifest.inputs["days"]
    return files.finite_or_null(
        {
            "verdict": decided.kind.value,
            "published": decided.publishes,
            "forced": decided.forced,
            "reason": decided.reason,
            "run_date": run_date,
            "candidate": made.checkpoint,
            "global_step": made.global_step,
            "champion": champion
            and {
                "version": champion.version,
                "model": champion.model,
            },
            "judged_on": [d["date"] for d in days if d["split"] == JUDGED],
            "rows": evidence.rows,
            "metric": evidence.order.metric,
            "better": evidence.order.mode,
            "metrics": {
                "candidate": dict(evidence.candidate),
                "champion": evidence.champion and dict(evidence.champion),
                "constant": dict(evidence.baseline),
            },
            "advantage": found and dataclasses.asdict(found),
            "rules": [dataclasses.asdict(rule) for rule in decided.rules],
            "slices": [dataclasses.asdict(part) for part in evidence.slices],
        }
    )
