"""Flags: Where TensorBoard listens."""

from __future__ import annotations

import dataclasses

from absl import flags


@dataclasses.dataclass(frozen=True)
class MonitorFlags:
    """Settings of monitor, as given.

    Attributes:
      host: Address to listen on.
      port: Port; 0 takes a free one.
    """

    host: str = "127.0.0.1"
    port: int = 0


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "monitor_host",
        "127.0.0.1",
        "Address to listen on. TensorBoard knows no users: any other address lets"
        " everybody who reaches it see all runs.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "monitor_port",
        0,
        "Port to listen on; 0 takes a free one.",
        lower_bound=0,
        upper_bound=65535,
        flag_values=values,
    )
    flags.register_validator(
        "monitor_host",
        lambda host: bool(host.strip()),
        "needs an address",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> MonitorFlags:
    return MonitorFlags(host=values.monitor_host.strip(), port=values.monitor_port)
