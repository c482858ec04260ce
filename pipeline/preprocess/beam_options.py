"""What the pipeline itself needs to know of the options that it hands to Beam."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence

from pipeline.types import UserError

_LOCAL_RUNNERS = (None, "FnApiRunner", "DirectRunner", "PrismRunner")


@dataclasses.dataclass(frozen=True)
class BeamOptions:
    """The known ones of Beam's options.

    Attributes:
      runner: The runner asked for; None for our default.
      direct_num_workers: Workers of a local runner; 0 means one for each core.
      direct_running_mode: How a local runner runs them.
    """

    runner: str | None
    direct_num_workers: int
    direct_running_mode: str

    @property
    def workers(self) -> int | None:
        """Number of workers; None where a runner that was asked for decides it."""
        if self.runner is not None:
            return None
        return self.direct_num_workers or os.cpu_count() or 1

    @property
    def has_local_workers(self) -> bool:
        """Whether there are workers on this machine beside this process."""
        if self.runner not in _LOCAL_RUNNERS:
            return False
        return (
            self.runner == "PrismRunner"
            or self.direct_num_workers != 1
            or self.direct_running_mode == "multi_processing"
        )


def parse(options: Sequence[str]) -> BeamOptions:
    """Parses options in either form, `--name=value` or two words.

    Raises:
      UserError: The value of one is of the wrong type.
    """
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, exit_on_error=False
    )
    parser.add_argument("--runner")
    parser.add_argument("--direct_num_workers", type=int, default=1)
    parser.add_argument("--direct_running_mode", default="in_memory")
    try:
        known, _ = parser.parse_known_args(list(options))
    except argparse.ArgumentError as error:
        raise UserError(f"--beam_option: {error}") from None
    return BeamOptions(**vars(known))
