"""Flags: The local server."""

from __future__ import annotations

import dataclasses
import re

from absl import flags


@dataclasses.dataclass(frozen=True)
class ServeFlags:
    """Settings of serve, as given.

    Attributes:
      host: Address to listen on.
      port: Port; 0 takes a free one.
      model_name: Name of the model in paths.
      max_request_mb: Size of the largest request, in MiB.
      poll_seconds: How often the export directory is looked at.
      stop_seconds: How long requests in work may take once the server is to stop.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    model_name: str = "model"
    max_request_mb: int = 16
    poll_seconds: float = 1.0
    stop_seconds: int = 30


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "host",
        "127.0.0.1",
        "Address to listen on. The server knows no users: any other address lets"
        " everybody who reaches it ask the model.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "port",
        8501,
        "Port to listen on, as TensorFlow Serving's; 0 takes a free one.",
        lower_bound=0,
        upper_bound=65535,
        flag_values=values,
    )
    flags.DEFINE_string(
        "model_name",
        "model",
        "Name of the model in the paths of requests.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "max_request_mb",
        16,
        "Size of the largest request, in MiB.",
        lower_bound=1,
        upper_bound=1024,
        flag_values=values,
    )
    flags.DEFINE_float(
        "poll_seconds",
        1.0,
        "How often the export directory is looked at for a new version.",
        lower_bound=0.05,
        upper_bound=3600.0,
        flag_values=values,
    )
    flags.register_validator(
        "model_name",
        lambda name: re.fullmatch(r"[A-Za-z0-9_.-]+", name) is not None,
        "needs letters, digits and _.- only",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> ServeFlags:
    return ServeFlags(
        host=values.host.strip(),
        port=values.port,
        model_name=values.model_name,
        max_request_mb=values.max_request_mb,
        poll_seconds=values.poll_seconds,
    )
