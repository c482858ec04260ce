"""Telling others how a night ended: one line of JSON, a command, a file of metrics."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import subprocess
import time
from collections.abc import Iterator

from pipeline import files
from pipeline.console import Console
from pipeline.flags.notices import NoticeFlags
from pipeline.retraining.outcome import FINAL, End, Outcome
from pipeline.types import UserError

_HOOK_SECONDS = 60
_PREFIX = "estimator_pipeline_retrain"


def check_flags(flags: NoticeFlags) -> None:
    """Raises UserError where the command cannot be taken apart."""
    if flags.webhook_command is not None:
        try:
            words = shlex.split(flags.webhook_command)
        except ValueError as error:
            raise UserError(f"--webhook_command: {error}") from None
        if not words:
            raise UserError("--webhook_command is empty")


def send(outcome: Outcome, job: str, flags: NoticeFlags, console: Console) -> None:
    """Tells everybody; where that fails it is said, and changes nothing.

    Args:
      outcome: What to tell.
      job: Directory of the job.
      flags: Whom to tell.
      console: Where to say what fails.
    """
    line = to_line(outcome)
    if flags.webhook_command is not None:
        _run_hook(flags.webhook_command, line, console)
    if flags.prometheus_file is not None:
        try:
            files.write_atomically(flags.prometheus_file, to_prometheus(outcome, job))
        except UserError as error:
            console.progress(f"--prometheus_file: {error}")
    # Whatever the verbosity: it is meant for programs.
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


def to_line(outcome: Outcome) -> str:
    """Returns the outcome as a line of JSON; numbers that are not finite as null."""
    value = files.finite_or_null(outcome.to_json())
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _run_hook(command: str, line: str, console: Console) -> None:
    try:
        done = subprocess.run(
            shlex.split(command),
            input=f"{line}\n",
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_HOOK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        console.progress(f"--webhook_command: {error}")
        return
    if done.returncode:
        said = " ".join(done.stderr.split())[-200:]
        console.progress(f"--webhook_command: exit code {done.returncode}: {said}")


def to_prometheus(outcome: Outcome, job: str) -> str:
    """Returns metrics in Prometheus' text format, version 0.0.4."""
    label = job.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = []
    for name, text, samples in _metrics(outcome):
        full = f"{_PREFIX}_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} gauge"]
        for extra, value in samples:
            lines.append(f'{full}{{job_dir="{label}"{extra}}} {float(value)!r}')
    return "\n".join(lines) + "\n"


def _metrics(outcome: Outcome) -> Iterator[tuple[str, str, list[tuple[str, float]]]]:
    yield "last_run_timestamp_seconds", "End of the last run.", [("", time.time())]
    yield "last_run_seconds", "Duration of the last run.", [("", outcome.seconds)]
    yield "last_exit_code", "Its exit code.", [("", outcome.exit_code)]
    ends = [(f',outcome="{e.value}"', e is outcome.end) for e in End]
    yield "last_outcome", "1 for how the last run ended.", ends
    fine = outcome.end in (*FINAL, End.NOTHING_TO_DO)
    yield "last_run_finished", "Whether it came to a verdict.", [("", fine)]
    if outcome.champion is not None:
        yield "champion_version", "Version served now.", [("", outcome.champion)]
    values = [
        (f',model="{who}",metric="{name}"', value)
        for who, metrics in (
            ("candidate", outcome.metrics),
            ("champion", outcome.champion_metrics),
        )
        for name, value in metrics.items()
        if math.isfinite(value)
    ]
    if values:
        yield "metric", "On the test days of the last run.", values
