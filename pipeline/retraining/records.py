"""What of a run goes into the store of lineage."""

from __future__ import annotations

import dataclasses
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import declaration as declarations
from pipeline import files, model_dir
from pipeline import manifest as manifests
from pipeline.dataset import Dataset
from pipeline.retraining import lineage
from pipeline.retraining.layout import Attempt
from pipeline.retraining.merged import DayOf
from pipeline.retraining.outcome import Outcome
from pipeline.retraining.registry import Registry
from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class Trail:
    """What a run has come across so far.

    Attributes:
      request: What it was asked for; None before its data was known.
      champion: Version of the champion when it began.
      warnings: What was let pass.
      datasets: Days and window.
      window: Fingerprint of the window.
      model: The candidate.
      verdict: The verdict file's content.
    """

    request: str | None = None
    champion: int | None = None
    warnings: tuple[str, ...] = ()
    datasets: tuple[lineage.Dataset, ...] = ()
    window: str | None = None
    model: lineage.Model | None = None
    verdict: Mapping[str, Any] | None = None

    def with_dataset(self, dataset: Dataset, days: Sequence[DayOf]) -> Trail:
        text = declarations.dump(dataset.declaration)
        of_days = tuple(_of_day(one, text) for one in days)
        return self._with_window(dataset.manifest, text, of_days)

    def _with_window(
        self,
        manifest: manifests.Manifest,
        text: str,
        of_days: tuple[lineage.Dataset, ...],
    ) -> Trail:
        window = lineage.Dataset(
            manifest.fingerprint,
            "window",
            dict(manifest.results["rows_written"]),
            tuple(manifest.inputs["files"]),
            text,
            {d["date"]: (d["split"], d["dataset"]) for d in manifest.inputs["days"]},
        )
        return dataclasses.replace(
            self, datasets=(*of_days, window), window=window.fingerprint
        )

    def with_attempt(self, attempt: Attempt, verdict: Mapping[str, Any]) -> Trail:
        """Adds what an attempt's directory holds of its model and verdict."""
        trained = model_dir.open_model(attempt.model)
        begin = trained.training.warm_start
        model = lineage.Model(
            checkpoint=verdict["candidate"],
            dataset=trained.training.dataset,
            warm_start=begin and begin["checkpoint"],
            global_step=verdict["global_step"],
            training=trained.training.as_json(),
            versions=manifests.versions(),
        )
        return dataclasses.replace(self, model=model, verdict=verdict)


def _of_day(one: DayOf, text: str) -> lineage.Dataset:
    return lineage.Dataset(
        one.day.fingerprint,
        "day",
        {"all": one.day.rows},
        tuple(
            {"path": f.path, "bytes": f.bytes, "sha256": f.sha256}
            for f in one.day.files
        ),
        text,
    )


def read_verdict(attempt: Attempt) -> dict[str, Any]:
    """Returns the content of an attempt's verdict file."""
    value = files.read_json(attempt.verdict)
    if not isinstance(value, dict) or "verdict" not in value:
        raise UserError(f"{attempt.verdict} is no verdict of this pipeline")
    return value


def known(metrics: Mapping[str, float | None] | None) -> dict[str, float]:
    """Returns the metrics that have a value."""
    return {n: v for n, v in (metrics or {}).items() if v is not None}


def publications(registry: Registry) -> tuple[lineage.Publication, ...]:
    """Returns the published versions as the store has them."""
    names = {f.name for f in dataclasses.fields(lineage.Publication)} - {"directory"}
    return tuple(
        lineage.Publication(
            directory=os.path.realpath(registry.directory),
            **{name: getattr(one, name) for name in names},
        )
        for one in registry.all()
    )


def add(
    store: lineage.Store,
    started: str,
    flagfile: str,
    outcome: Outcome,
    trail: Trail,
    registry: Registry,
) -> None:
    """Adds a run with all it made."""
    run = lineage.Run(
        id=uuid.uuid4().hex,
        run_date=outcome.run_date,
        request=trail.request,
        outcome=outcome.end.value,
        exit_code=int(outcome.exit_code),
        message=outcome.message,
        started=started,
        seconds=outcome.seconds,
        host=socket.gethostname(),
        flags=flagfile,
        dataset=trail.window,
        model=trail.model and trail.model.checkpoint,
        champion=trail.champion,
        verdict=trail.verdict,
        warnings=trail.warnings,
    )
    store.add(run, trail.datasets, trail.model, publications(registry))
