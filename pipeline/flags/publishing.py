"""Flags: Published versions: where they are, and why one is changed by hand."""

from __future__ import annotations

import dataclasses

from absl import flags


@dataclasses.dataclass(frozen=True)
class PublishingFlags:
    """Settings about published versions, as given.

    Attributes:
      serving_dir: Where they are; None for the default place.
      reason: Why a candidate is forced or rolled back.
    """

    serving_dir: str | None = None
    reason: str | None = None


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "serving_dir",
        None,
        "Where versions are published; by default WORK_DIR/serving/NAME. A server"
        " watches it.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "reason",
        None,
        "Why a candidate is forced, or why it is rolled back; it is recorded.",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> PublishingFlags:
    return PublishingFlags(values.serving_dir, (values.reason or "").strip() or None)
