"""Where retraining keeps what it makes, below --work_dir.

retrain/days/DATE/       a day's dataset; DATE.json beside it says from which files
retrain/runs/DATE-KEY/   an attempt: window/ (dataset), model/, export/, verdict.json
retrain/lineage.sqlite   what came from what
retrain/lock.json        who is at work
retrain/tensorboard/     metrics of candidates and champions, by day
serving/NAME/VERSION/    what servers watch, and champion.json beside the versions
"""

from __future__ import annotations

import dataclasses
import os


@dataclasses.dataclass(frozen=True)
class Layout:
    """The directories of a retraining job.

    Attributes:
      work_dir: The job's directory.
      serving: Directory of published versions.
    """

    work_dir: str
    serving: str

    @property
    def root(self) -> str:
        return os.path.join(self.work_dir, "retrain")

    @property
    def days(self) -> str:
        return os.path.join(self.root, "days")

    @property
    def runs(self) -> str:
        return os.path.join(self.root, "runs")

    @property
    def lineage(self) -> str:
        return os.path.join(self.root, "lineage.sqlite")

    @property
    def lock(self) -> str:
        return os.path.join(self.root, "lock.json")

    @property
    def tensorboard(self) -> str:
        return os.path.join(self.root, "tensorboard")

    def day(self, date: str) -> str:
        return os.path.join(self.days, date)

    def attempt(self, run_date: str, key: str) -> Attempt:
        return self.attempt_of(f"{run_date}-{key[:12]}")

    def attempt_of(self, name: str) -> Attempt:
        """Returns an attempt by the name of its directory."""
        return Attempt(os.path.join(self.runs, name))


@dataclasses.dataclass(frozen=True)
class Attempt:
    """The directories of one try to make a champion of a day."""

    root: str

    @property
    def name(self) -> str:
        return os.path.basename(self.root)

    @property
    def dataset(self) -> str:
        return os.path.join(self.root, "window")

    @property
    def model(self) -> str:
        return os.path.join(self.root, "model")

    @property
    def evaluation(self) -> str:
        return os.path.join(self.root, "evaluation")

    @property
    def export(self) -> str:
        return os.path.join(self.root, "export")

    @property
    def verdict(self) -> str:
        return os.path.join(self.root, "verdict.json")
