"""Flags: The processes of a local cluster."""

from __future__ import annotations

import dataclasses

from absl import flags


@dataclasses.dataclass(frozen=True)
class LauncherFlags:
    """A cluster on this machine.

    Attributes:
      chief: Whether there is a chief.
      workers: Number of workers beside it.
      ps: Number of parameter servers.
      evaluator: Whether there is an evaluator.
      restarts: How often the cluster is started again after a failure.
      end_seconds: How long processes may take to end once the cluster is over.
    """

    chief: bool
    workers: int
    ps: int
    evaluator: bool
    restarts: int
    end_seconds: int


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_bool(
        "chief",
        True,
        "Start a chief; without one, worker 0 leads, and there can be no ps.",
        flag_values=values,
    )
    for name, default, text in (
        ("workers", 1, "Workers beside the chief."),
        ("ps", 0, "Parameter servers; with none, workers train in step."),
    ):
        flags.DEFINE_integer(
            name, default, text, lower_bound=0, upper_bound=64, flag_values=values
        )
    flags.DEFINE_bool(
        "evaluator",
        False,
        "Start an evaluator; without one the chief evaluates.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "restarts",
        0,
        "After a failure start the whole cluster again, at most so often; training"
        " goes on from the last checkpoint.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "end_seconds",
        60,
        "How long processes may take to end by themselves after the chief has ended;"
        " after a failure they are sent SIGTERM and get as long. Then they are killed.",
        lower_bound=1,
        flag_values=values,
    )


def read(values: flags.FlagValues) -> LauncherFlags:
    return LauncherFlags(
        chief=values.chief,
        workers=values.workers,
        ps=values.ps,
        evaluator=values.evaluator,
        restarts=values.restarts,
        end_seconds=values.end_seconds,
    )
