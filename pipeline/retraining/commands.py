"""The commands of scheduled retraining: retrain, status, rollback, lineage."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline import files, system_errors
from pipeline.invocation import Invocation
from pipeline.retraining.layout import Layout
from pipeline.retraining.outcome import End, Outcome, end_of
from pipeline.retraining.registry import Registry
from pipeline.types import ExitCode, UserError

if TYPE_CHECKING:
    from pipeline.retraining.night import Night

# SQLAlchemy, Arrow and TensorFlow take a moment to import: not before flags are checked.


@dataclasses.dataclass(frozen=True)
class Start:
    """When a run began.

    Attributes:
      monotonic: `time.monotonic()` then.
      text: Local time.
    """

    monotonic: float
    text: str

    def seconds(self) -> float:
        """Returns the seconds since then."""
        return round(time.monotonic() - self.monotonic, 3)


def layout_of(call: Invocation) -> Layout:
    """Returns where a job's directories are."""
    given = call.retraining.publishing.serving_dir
    serving = call.paths.serving
    if given is not None:
        if not given.strip():
            raise UserError("--serving_dir needs a directory")
        serving = os.path.abspath(os.path.expanduser(given.strip()))
    return Layout(call.paths.work_dir, serving)


def run_retrain(call: Invocation) -> ExitCode:
    """Makes a new champion of a date, if there is something to do and it is better."""
    from pipeline.retraining import notices

    began = Start(time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    layout = layout_of(call)
    tell = functools.partial(
        notices.send,
        job=layout.work_dir,
        flags=call.retraining.notices,
        console=call.console,
    )
    try:
        outcome = _run_night(call, layout, began)
    except Exception as error:
        tell(_failed(call, error, began))
        raise
    for line in _result_lines(outcome):
        call.console.result(line)
    tell(outcome)
    return ExitCode(outcome.exit_code)


def _failed(call: Invocation, error: Exception, began: Start) -> Outcome:
    code = ExitCode.BUG
    if isinstance(error, UserError):
        code = error.exit_code
    elif system_errors.is_system_error(error):
        code = ExitCode.USER_ERROR
    message = str(error) or repr(error)
    date = call.data.run_date or ""
    return Outcome(end_of(code), code, date, message, seconds=began.seconds())


def _run_night(call: Invocation, layout: Layout, began: Start) -> Outcome:
    from pipeline.retraining import interruption, lineage, lock, night, records

    declaration = night.check_flags(call, layout)
    registry = Registry(layout.serving)
    stale_seconds = call.retraining.lock_stale_secs
    with (
        interruption.sigterm_raises(),
        lock.held(layout.lock, stale_seconds, call.console) as held,
    ):
        store = lineage.Store(layout.lineage)
        tonight = night.Night(call, layout, registry, store, held)
        add = functools.partial(
            records.add,
            store,
            started=began.text,
            flagfile=call.flagfile,
            registry=registry,
        )
        try:
            outcome, trail = night.run(tonight, declaration)
        except Exception as error:
            # Where the disk is full this may fail as well; the first error is told.
            with contextlib.suppress(UserError, OSError):
                add(outcome=_failed(call, error, began), trail=records.Trail())
            raise
        outcome = dataclasses.replace(
            outcome, seconds=began.seconds(), warnings=trail.warnings
        )
        if outcome.end is not End.NOTHING_TO_DO:
            add(outcome=outcome, trail=trail)
            _finish(tonight, outcome)
    return outcome


def _finish(tonight: Night, outcome: Outcome) -> None:
    """Does what may fail without harm: the champion stands, and the run is recorded."""
    from pipeline.retraining import night

    try:
        night.finish(tonight, outcome)
    except (UserError, OSError) as error:
        tonight.call.console.progress(f"retrain: {error}")


def _result_lines(outcome: Outcome) -> Iterator[str]:
    yield f"retrain:    {outcome.end.value}: {outcome.message}"
    if outcome.verdict is not None:
        yield f"            verdict: {outcome.verdict}"
    yield f"champion:   {_or_none(outcome.champion)}"


def _or_none(version: int | None) -> str:
    return "none" if version is None else f"version {version}"


def run_status(call: Invocation) -> None:
    """Shows champion, last runs, lock and the next window."""
    from pipeline.retraining import status

    for line in status.to_lines(call, layout_of(call)):
        call.console.result(line)


def run_rollback(call: Invocation) -> ExitCode:
    """Makes an earlier version the champion again."""
    layout = layout_of(call)
    flags = call.retraining
    champion, is_new = Registry(layout.serving).rollback(
        flags.history.to, flags.publishing.reason
    )
    if not is_new:
        call.console.result(
            f"rollback:   nothing to do: version {champion.version} is that model"
        )
        return ExitCode.NOTHING_TO_DO
    call.console.result(
        f"rollback:   version {champion.version} repeats version {champion.of} of"
        f" {champion.run_date}; servers take it now"
    )
    return ExitCode.OK


def run_lineage(call: Invocation) -> None:
    """Tells what made a version."""
    if len(call.arguments) != 1:
        raise UserError("lineage needs one version, or `champion`")
    output = call.output and os.path.abspath(os.path.expanduser(call.output.strip()))
    layout = layout_of(call)
    if not os.path.exists(layout.lineage):
        raise UserError(f"--work_dir: there is no store of lineage {layout.lineage}")
    from pipeline.retraining import lineage, lineage_report, records

    store = lineage.Store(layout.lineage)
    registry = Registry(layout.serving)
    if os.path.isdir(layout.serving):
        # A rollback does not wait for the store.
        store.add_publications(records.publications(registry))
    report = lineage_report.find(
        store,
        os.path.realpath(layout.serving),
        _version(call.arguments[0], registry),
    )
    if output:
        files.write_json(output, report.to_json())
        call.console.result(f"lineage: {output}")
        return
    for line in lineage_report.to_lines(report):
        call.console.result(line)


def _version(word: str, registry: Registry) -> int:
    if word != "champion":
        if not word.isdigit():
            raise UserError(f"lineage: {word!r} is neither a version nor `champion`")
        return int(word)
    champion = registry.champion()
    if champion is None:
        raise UserError(f"--serving_dir: {registry.directory} holds no versions")
    return champion.version
