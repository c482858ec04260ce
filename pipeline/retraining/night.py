"""A night from its days to the champion: what retrain does."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from model_fns import registry as models
from pipeline import environment, train_plan
from pipeline.invocation import Invocation
from pipeline.retraining import (
    data,
    lineage,
    merged,
    notices,
    records,
    request,
    retention,
    verdict,
)
from pipeline.retraining.layout import Attempt, Layout
from pipeline.retraining.lock import Held
from pipeline.retraining.outcome import FINAL, End, Outcome, code_of
from pipeline.retraining.registry import Published, Registry
from pipeline.types import Declaration, ExitCode, UserError

_SHOWN = 60
"""Nights in the table in TensorBoard."""


@dataclasses.dataclass(frozen=True)
class Night:
    """A run, as far as it is known before its data is read.

    Attributes:
      call: The flags.
      layout: The directories.
      registry: The published versions.
      store: The lineage.
      lock: Held by this process.
    """

    call: Invocation
    layout: Layout
    registry: Registry
    store: lineage.Store
    lock: Held

    @property
    def run_date(self) -> str:
        return self.call.data.run_date


def check_flags(call: Invocation, layout: Layout) -> Declaration:
    """Checks what can be checked before the lock is taken; returns the declaration.

    Raises:
      UserError: Flags contradict each other or the declaration.
    """
    data.check_flags(call)
    if call.training.warm_start.source is not None:
        raise UserError(
            "--warm_start_from has no effect on retrain; --start_from=champion begins"
            " with the champion's weights"
        )
    data.window(call.data.run_date, call.retraining)
    declaration = data.reader(call, layout).declaration
    models.check_task(models.find(call.training.model), declaration, call.data.features)
    verdict.check_flags(call.retraining.blessing, declaration)
    notices.check_flags(call.retraining.notices)
    train_plan.check_flags(call.training, os.path.join(layout.runs, "new"))
    call.options.check(models.find(call.training.model), declaration)
    return declaration


def run(night: Night, declaration: Declaration) -> tuple[Outcome, records.Trail]:
    """Does what is left to do for a date.

    Returns:
      How it ended, and what is to be recorded of it.

    Raises:
      UserError: As the stages, BAD_DATA where data breaks a limit.
    """
    call = night.call
    champion = night.registry.repair()
    night.store.add_publications(records.publications(night.registry))
    how = data.reader(call, night.layout)
    days, warnings = data.read(
        data.window(night.run_date, call.retraining), how, call.retraining
    )
    form = call.data.record_form
    window = merged.fingerprint(days, declaration, form)
    candidate = request.of_candidate(call, window)
    asked = request.of_run(call, candidate)
    trail = records.Trail(asked, champion and champion.version, warnings)
    done = _done(night, asked, champion)
    if done is not None:
        return done, trail
    warnings += data.pass_gates(call, days, champion, night.layout, declaration)
    trail = dataclasses.replace(trail, warnings=warnings)
    for warning in warnings:
        call.console.progress(f"warning: {warning}")
    published = _published_before(night, asked)
    attempt = _attempt(night, candidate, champion, published)
    dataset = merged.merge(attempt.dataset, days, declaration, form, call.console)
    trail = trail.with_dataset(dataset, days)
    if published is not None:
        return _finish(night, attempt, published, trail)
    return _make(night, attempt, dataset, champion, trail)


def _attempt(
    night: Night,
    candidate: str,
    champion: Published | None,
    published: Published | None,
) -> Attempt:
    if published is not None:
        return night.layout.attempt_of(published.attempt)
    return night.layout.attempt(
        night.run_date, request.of_attempt(candidate, champion and champion.model)
    )


def _done(night: Night, asked: str, champion: Published | None) -> Outcome | None:
    """Returns the outcome of a request that came to an end before, or None."""
    finals = tuple(end.value for end in FINAL)
    earlier = night.store.runs_of(asked, finals)
    if not earlier:
        return None
    last = earlier[-1]
    if night.call.retraining.blessing.force and last.outcome != End.PUBLISHED.value:
        return None
    return Outcome(
        End.NOTHING_TO_DO,
        code_of(End.NOTHING_TO_DO),
        night.run_date,
        f"{night.run_date} was done before, from the same data, settings and code:"
        f" {last.outcome} ({last.message})",
        champion=champion and champion.version,
    )


def _published_before(night: Night, asked: str) -> Published | None:
    """Returns what a run published that was killed before it was recorded."""
    for one in night.registry.all():
        if one.of is None and one.request == asked:
            return one
    return None


def _finish(
    night: Night, attempt: Attempt, one: Published, trail: records.Trail
) -> tuple[Outcome, records.Trail]:
    found = records.read_verdict(attempt)
    trail = trail.with_attempt(attempt, found)
    message = f"version {one.version} was published before this run was interrupted"
    outcome = _outcome(night, End.PUBLISHED, message, found, attempt, one)
    # It may have been rolled back since.
    return dataclasses.replace(
        outcome, champion=night.registry.champion().version
    ), trail


def _make(
    night: Night,
    attempt: Attempt,
    dataset,
    champion: Published | None,
    trail: records.Trail,
) -> tuple[Outcome, records.Trail]:
    call = night.call
    call.options.prepare()
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import recovery
    from pipeline.retraining import candidate

    with recovery.explained_writes(attempt.root):
        made = candidate.make(
            call, attempt, dataset, champion, night.layout, night.registry, night.lock
        )
    if champion is not None and made.checkpoint == champion.model:
        message = f"the candidate is the champion, version {champion.version}, again"
        return Outcome(
            End.NOTHING_TO_DO,
            code_of(End.NOTHING_TO_DO),
            night.run_date,
            message,
            champion=champion.version,
        ), trail
    found = candidate.write_verdict(attempt, night.run_date, made, champion, dataset)
    trail = trail.with_attempt(attempt, found)
    decided = made.verdict
    if not decided.publishes:
        end = End(decided.kind.value)
        return (
            _outcome(night, end, decided.reason, found, attempt, champion),
            trail,
        )
    night.lock.check()
    _check_not_rolled_back(night, champion)
    call.console.progress(f"publish: {made.directory} into {night.registry.directory}")
    one = night.registry.publish(
        made.directory,
        Published(
            version=0,
            of=None,
            model=made.checkpoint,
            export=made.export,
            request=trail.request,
            run_date=night.run_date,
            attempt=attempt.name,
            work_dir=night.layout.work_dir,
            verdict=decided.kind.value,
            reason=decided.forced,
            published="",
        ),
    )
    night.registry.prune(call.serving.keep_versions)
    message = f"version {one.version} published: {decided.reason}"
    return _outcome(night, End.PUBLISHED, message, found, attempt, one), trail


def _check_not_rolled_back(night: Night, champion: Published | None) -> None:
    """Checks that nobody went back to an earlier champion while this run was at work.

    Raises:
      UserError: Somebody did, and the candidate was not judged against that one.
    """
    now = night.registry.champion()
    if now != champion and now is not None and now.of is not None:
        raise UserError(
            f"version {now.version} was rolled back to meanwhile; the same command"
            " judges the candidate against it",
            ExitCode.LOCKED,
        )


def _outcome(
    night: Night,
    end: End,
    message: str,
    found: dict[str, Any],
    attempt: Attempt,
    champion: Published | None,
) -> Outcome:
    metrics = found.get("metrics", {})
    return Outcome(
        end,
        code_of(end),
        night.run_date,
        message,
        version=champion.version if end is End.PUBLISHED else None,
        champion=champion and champion.version,
        verdict=attempt.verdict,
        metrics=records.known(metrics.get("candidate")),
        champion_metrics=records.known(metrics.get("champion")),
    )


def finish(night: Night, outcome: Outcome) -> None:
    """Does what comes after a run is recorded: curves, and making room."""
    call, layout = night.call, night.layout
    if outcome.metrics:
        from pipeline.retraining import tensorboard

        tensorboard.write(layout.tensorboard, outcome, night.store.runs(_SHOWN))
    retention.remove_attempts(layout, night.registry, call.retraining.keep_runs)
    retention.remove_days(layout, data.window(night.run_date, call.retraining))
