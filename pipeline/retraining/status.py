"""What status shows: champion, last runs, lock and the next window."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator

from pipeline.invocation import Invocation
from pipeline.retraining import data, lineage, lock
from pipeline.retraining.days import DayError
from pipeline.retraining.layout import Layout
from pipeline.retraining.outcome import FINAL
from pipeline.retraining.registry import Published, Registry
from pipeline.retraining.window import Window


def to_lines(call: Invocation, layout: Layout) -> Iterator[str]:
    """Yields the state of a job as text."""
    registry = Registry(layout.serving)
    champion = registry.champion() if os.path.isdir(layout.serving) else None
    yield from _champion(champion, registry)
    yield from _lock(layout, call.retraining.lock_stale_secs)
    runs: list[lineage.Run] = []
    if os.path.exists(layout.lineage):
        runs = lineage.Store(layout.lineage).runs(call.retraining.history.last)
    yield f"last runs:  {len(runs) or 'none'}"
    for run in runs:
        yield (
            f"            {run.run_date} {run.outcome:<12} {run.seconds:5.0f} s "
            f" {run.message}"
        )
    yield from _next(call, layout, runs)


def _champion(champion: Published | None, registry: Registry) -> Iterator[str]:
    if champion is None:
        yield f"champion:   none in {registry.directory}"
        return
    repeats = f", repeats version {champion.of}" if champion.of else ""
    yield f"champion:   version {champion.version}{repeats} in {registry.directory}"
    yield (
        f"            of {champion.run_date}, published {champion.published}, verdict"
        f" {champion.verdict}"
    )
    if champion.reason:
        yield f"            reason: {champion.reason}"
    numbers = ", ".join(str(one.version) for one in registry.all())
    yield f"            versions there: {numbers}"


def _lock(layout: Layout, stale_seconds: float) -> Iterator[str]:
    state = lock.read(layout.lock) if os.path.exists(layout.lock) else None
    if state is None:
        yield "lock:       free"
    elif state.is_stale(stale_seconds):
        yield f"lock:       stale, of {state.owner}; the next run takes it over"
    else:
        yield f"lock:       {state.owner}, last seen {state.silent:.0f} s ago"


def _next(call: Invocation, layout: Layout, runs: list[lineage.Run]) -> Iterator[str]:
    """Yields the window of --run_date, or of the day after the last one done."""
    flags = call.retraining
    finals = [end.value for end in FINAL]
    done = [run.run_date for run in runs if run.outcome in finals]
    if call.data.run_date is not None:
        window = data.window(call.data.run_date, flags)
    elif done:
        last = datetime.date.fromisoformat(max(done))
        window = Window(last, flags.window_days, flags.eval_days, flags.test_days)
        window = window.next()
    else:
        yield "next:       give --run_date for its window"
        return
    yield f"next:       {window.run_date}, window from {window.first}"
    if call.data.input is None:
        return
    how = data.reader(call, layout)
    problems = []
    for date in window.dates():
        try:
            how.find(date.isoformat())
        except DayError as error:
            problems.append(error)
    for problem in problems[:5]:
        yield f"            {problem}"
    if len(problems) > 5:
        yield f"            and {len(problems) - 5} more days"
    if not problems:
        yield "            the files of all its days are there"
