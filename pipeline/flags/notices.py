"""Flags: Who is told how a night ended."""

from __future__ import annotations

import dataclasses

from absl import flags


@dataclasses.dataclass(frozen=True)
class NoticeFlags:
    """Whom to tell of the outcome, as given.

    Attributes:
      webhook_command: A command that gets the outcome, or None.
      prometheus_file: A file of metrics, or None.
    """

    webhook_command: str | None = None
    prometheus_file: str | None = None


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "webhook_command",
        None,
        "Command that gets the outcome as JSON on its standard input, e.g. 'curl"
        " --data @- URL'. It is not run by a shell.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "prometheus_file",
        None,
        "File of metrics about the run in Prometheus' text format, for node_exporter's"
        " textfile collector.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> NoticeFlags:
    return NoticeFlags(values.webhook_command, values.prometheus_file)
