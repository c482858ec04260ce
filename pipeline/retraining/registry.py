"""The published versions of a model, which servers watch, and which is the champion.

Servers take the highest number. So a version is published under a number above all
others, and going back to an earlier one publishes that one once more, as hard links:
that takes no time, and at no moment is there less than a whole model.

`assets.extra/published.json` in each version says what it is; `champion.json` beside the
versions repeats that of the champion.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time

from export import versions
from pipeline import files
from pipeline.types import UserError

CHAMPION_FILE = "champion.json"
PUBLISHED_FILE = os.path.join(versions.EXTRA, "published.json")
# Another job may publish into the same directory; that takes moments.
_WAIT_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Published:
    """A published version.

    Attributes:
      version: Its number.
      of: The version that it repeats, after a rollback; else None.
      model: Digest of its checkpoint.
      export: Fingerprint of the export it was made from.
      request: What was asked for when it was made: data, settings and code.
      run_date: Date of the run that made it.
      attempt: Directory of that run; may be gone.
      work_dir: Directory of the job.
      verdict: What its verdict said.
      reason: Why it was forced, or rolled back to; else None.
      published: When, local time.
    """

    version: int
    of: int | None
    model: str
    export: str
    request: str
    run_date: str
    attempt: str
    work_dir: str
    verdict: str
    reason: str | None
    published: str

    @property
    def origin(self) -> int:
        """The version as which this model was published first."""
        return self.version if self.of is None else self.of


@dataclasses.dataclass(frozen=True)
class Registry:
    """A directory of published versions.

    Attributes:
      directory: Where they are.
    """

    directory: str

    def path(self, version: int) -> str:
        return versions.path(self.directory, version)

    def all(self) -> list[Published]:
        """Returns the versions there, rising.

        Raises:
          UserError: One of them was not published by retrain.
        """
        return [self._read(version) for version in versions.versions(self.directory)]

    def _read(self, version: int) -> Published:
        path = os.path.join(self.path(version), PUBLISHED_FILE)
        if not os.path.exists(path):
            raise UserError(
                f"--serving_dir: {self.path(version)} was not published by retrain;"
                " choose another directory"
            )
        return Published(
            **files.read_fields(path, Published, "a published version's record")
        )

    def champion(self) -> Published | None:
        """Returns the champion, which is the newest version; None where there is none.

        A kill may have come between a version and `champion.json`, which then is put
        right by the next `publish`, `rollback` or `repair`.
        """
        there = versions.versions(self.directory)
        return self._read(there[-1]) if there else None

    def repair(self) -> Published | None:
        """Makes `champion.json` name the champion; sweeps what killed runs left."""
        os.makedirs(self.directory, exist_ok=True)
        with self._locked():
            return self._repair()

    def _repair(self) -> Published | None:
        versions.sweep(self.directory)
        champion = self.champion()
        pointer = os.path.join(self.directory, CHAMPION_FILE)
        if champion is not None and self._pointed() != champion:
            files.write_json(pointer, dataclasses.asdict(champion))
        return champion

    def _pointed(self) -> Published | None:
        try:
            path = os.path.join(self.directory, CHAMPION_FILE)
            return Published(**files.read_fields(path, Published, "of this pipeline"))
        except UserError:
            return None

    def publish(self, source: str, record: Published) -> Published:
        """Publishes an exported version; once only, whoever was killed.

        Args:
          source: Directory of the version as it was exported.
          record: What it is; its number is chosen here.
        """
        os.makedirs(self.directory, exist_ok=True)
        with self._locked():
            self._repair()
            for earlier in self.all():
                if earlier.of is None and earlier.attempt == record.attempt:
                    return earlier
            return self._add(source, record)

    def rollback(self, to: int | None, reason: str | None) -> tuple[Published, bool]:
        """Publishes an earlier version once more.

        Args:
          to: Its number; None for the champion before.
          reason: Why, for the record.

        Returns:
          The champion, and whether it was published now.

        Raises:
          UserError: There is no such version.
        """
        if not os.path.isdir(self.directory):
            raise UserError(f"--serving_dir: {self.directory} holds no versions")
        with self._locked():
            champion = self._repair()
            wanted = self._wanted(to, champion)
            if wanted.origin == champion.origin:
                return champion, False
            record = dataclasses.replace(wanted, of=wanted.origin, reason=reason)
            return self._add(self.path(wanted.version), record), True

    def _wanted(self, to: int | None, champion: Published | None) -> Published:
        there = self.all()
        if champion is None:
            raise UserError(f"--serving_dir: {self.directory} holds no versions")
        if to is None:
            earlier = [one for one in there if one.origin < champion.origin]
            if not earlier:
                raise UserError(
                    f"there is no champion before version {champion.version} in"
                    f" {self.directory} to go back to"
                )
            return max(earlier, key=lambda one: (one.origin, one.version))
        for one in there:
            if one.version == to:
                return one
        listed = ", ".join(str(one.version) for one in there)
        raise UserError(f"--to={to} is not in {self.directory}; there are {listed}")

    def _add(self, source: str, record: Published) -> Published:
        number = versions.next_version(self.directory)
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        record = dataclasses.replace(record, version=number, published=now)
        with files.staged_directory(self.path(number)) as aside:
            shutil.copytree(
                source, aside, copy_function=files.link_or_copy, dirs_exist_ok=True
            )
            path = os.path.join(aside, PUBLISHED_FILE)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.write_json(path, dataclasses.asdict(record))
        self._repair()
        return record

    def prune(self, keep: int) -> list[int]:
        """Removes all but the newest `keep` versions; the champion is the newest."""
        with self._locked():
            return versions.prune(self.directory, keep)

    def _locked(self):
        return files.locked(os.path.join(self.directory, "versions"), _WAIT_SECONDS)
