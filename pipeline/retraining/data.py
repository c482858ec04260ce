"""The days of a night's window, and which of them are let be missing."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from pipeline import manifest as manifests
from pipeline.flags.input import DATASET
from pipeline.flags.retraining import RetrainingFlags
from pipeline.invocation import Invocation
from pipeline.retraining import gates
from pipeline.retraining.days import Day, DayError, Problem, Reader
from pipeline.retraining.layout import Layout
from pipeline.retraining.merged import DayOf
from pipeline.retraining.registry import Published
from pipeline.retraining.window import Window
from pipeline.types import Declaration, ExitCode, UserError

_PLACE = "{date"
# Of topics that retrain takes for their other flags.
_NO_EFFECT = ("dataset_dir", "model_dir", "evaluation_dir", "export_dir", "label")
_NO_EFFECT += ("against", "eval_split", "version", "eval_only_once", "on_change")
_NO_EFFECT += ("eval_timeout_secs", "input_fn", "exporters")


def check_flags(call: Invocation) -> None:
    """Raises UserError where the flags name no days."""
    if call.data.input is None or _PLACE not in call.data.input:
        raise UserError(
            "--input needs {date} in it, e.g. --input='data/{date}.csv': each day is"
            " read by itself"
        )
    if not (call.data.features or "").strip():
        raise UserError(
            "--features is needed: a declaration inferred anew each night would not be"
            " the same"
        )
    if call.data.run_date is None:
        raise UserError("--run_date is needed: the last day of the window, YYYY-MM-DD")
    useless = sorted(call.given.intersection(_NO_EFFECT))
    if useless:
        raise UserError(
            f"--{useless[0]} has no effect on retrain, which reads days from --input and"
            " keeps all it makes below --work_dir"
        )
    if call.input.input_fn not in (None, DATASET):
        raise UserError(
            f"--input_fn={call.input.input_fn}: retrain trains on the rows of its days"
        )


def window(run_date: str, flags: RetrainingFlags) -> Window:
    """Returns the window of a date."""
    date = datetime.date.fromisoformat(run_date)
    return Window(date, flags.window_days, flags.eval_days, flags.test_days)


def reader(call: Invocation, layout: Layout) -> Reader:
    return Reader(call.data, call.schema, layout.days, call.console)


def read(
    days: Window, how: Reader, flags: RetrainingFlags
) -> tuple[tuple[DayOf, ...], tuple[str, ...]]:
    """Makes every day of the window ready.

    Returns:
      The days that are there, rising, and a warning for each that is let be missing.

    Raises:
      UserError: A day is missing, empty or unreadable, and that is not allowed
        (BAD_DATA); it names all such days.
    """
    found: list[DayOf] = []
    problems: list[DayError] = []
    warnings: list[str] = []
    for date in days.dates():
        if date.isoformat() in flags.skip_days:
            warnings.append(f"the day {date} is left out by --skip_days")
            continue
        try:
            found.append(DayOf(how.day(date), days.role(date)))
        except DayError as error:
            problems.append(error)
    _check(problems, flags)
    return tuple(found), (*warnings, *(str(error) for error in problems))


def _check(problems: Sequence[DayError], flags: RetrainingFlags) -> None:
    unreadable = [p for p in problems if p.problem is Problem.UNREADABLE]
    if unreadable and flags.gates["schema"] == "stop":
        raise UserError(
            f"gate schema: {unreadable[0]}{_others(unreadable)}", ExitCode.BAD_DATA
        )
    if len(problems) > flags.allow_missing_days:
        raise UserError(
            f"{problems[0]}{_others(problems)}; bring the data, or accept it by"
            f" --allow_missing_days={len(problems)}",
            ExitCode.BAD_DATA,
        )


def _others(problems: Sequence[DayError]) -> str:
    names = ", ".join(p.date for p in problems[1:])
    return f" (so are {names})" if names else ""


@dataclasses.dataclass(frozen=True)
class ChampionData:
    """What a champion was made from.

    Attributes:
      days: Fingerprints of its days' datasets, by date.
      earlier: Statistics to compare new days with.
    """

    days: dict[str, str]
    earlier: gates.Earlier


def of_champion(champion: Published | None, layout: Layout) -> ChampionData | None:
    """Returns a champion's data; None where there is none, or it is gone."""
    if champion is None:
        return None
    directory = layout.attempt_of(champion.attempt).dataset
    try:
        manifest = manifests.read(directory)
    except UserError:
        return None
    if manifest is None:
        return None
    days = manifest.inputs["days"]
    learned = sum(day["split"] == "train" for day in days)
    return ChampionData(
        {day["date"]: day["dataset"] for day in days},
        gates.earlier(directory, learned),
    )


def pass_gates(
    call: Invocation,
    days: Sequence[DayOf],
    champion: Published | None,
    layout: Layout,
    declaration: Declaration,
) -> tuple[str, ...]:
    """Returns what the gates let pass with a warning.

    Raises:
      UserError: Something is not let pass (BAD_DATA).
    """
    flags = call.retraining
    before = of_champion(champion, layout)
    known = before.days if before else {}
    new: list[Day] = [d.day for d in days if known.get(d.day.date) != d.day.fingerprint]
    rows = sum(d.day.rows for d in days if d.role == "train")
    findings = list(gates.too_few_rows(rows, flags.min_train_rows))
    if champion is not None and before is None:
        findings.append(
            gates.Finding(
                "drift",
                f"the data of the champion, version {champion.version}, is gone, so"
                " that nothing can be compared with it",
            )
        )
    findings += gates.look(
        new,
        before and before.earlier,
        declaration,
        call.schema,
        call.checks,
    )
    return gates.apply(findings, flags.gates)
