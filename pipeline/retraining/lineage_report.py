"""Which rows, flags, code and champion made a version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from pipeline.retraining import lineage
from pipeline.retraining.lineage import Store
from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class Report:
    """All that is known of a version.

    Attributes:
      publication: The version.
      model: The model in it.
      dataset: What that was trained and judged on.
      run: The run that published it; None where that was killed before it was recorded.
      ancestors: Models whose weights it began with, the nearest first.
    """

    publication: lineage.Publication
    model: lineage.Model
    dataset: lineage.Dataset
    run: lineage.Run | None
    ancestors: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def find(store: Store, directory: str, version: int) -> Report:
    """Looks a version up.

    Raises:
      UserError: The store does not know it.
    """
    publication = store.publication(directory, version)
    if publication is None:
        raise UserError(
            f"the store of lineage knows no version {version} of {directory}"
        )
    model = store.model(publication.model)
    dataset = model and store.dataset(model.dataset)
    if model is None or dataset is None:
        raise UserError(
            f"version {version} is known, but the run that made it was not recorded;"
            f" give its retrain once more: --run_date={publication.run_date}"
        )
    runs = store.runs_of(publication.request, ("published",))
    ancestors: list[str] = []
    begin = model.warm_start
    while begin is not None and begin not in ancestors:
        ancestors.append(begin)
        earlier = store.model(begin)
        begin = earlier and earlier.warm_start
    return Report(
        publication, model, dataset, runs[-1] if runs else None, tuple(ancestors)
    )


def to_lines(report: Report) -> Iterator[str]:
    """Yields the report as text."""
    one, model, data = report.publication, report.model, report.dataset
    yield f"version {one.version} in {one.directory}, published {one.published}"
    if one.of is not None:
        yield f"  repeats version {one.of}: {one.reason or 'rolled back'}"
    elif one.reason:
        yield f"  forced: {one.reason}"
    yield f"  run date {one.run_date}, verdict {one.verdict}"
    if report.run is not None:
        run = report.run
        yield f"  run {run.id} on {run.host}, {run.started}, {run.seconds:.0f} s"
        against = f"version {run.champion}" if run.champion else "no champion"
        yield f"  judged against {against}: {run.message}"
        for warning in run.warnings:
            yield f"  let pass: {warning}"
    yield f"model {model.checkpoint[:16]}, step {model.global_step:,}"
    yield f"  {model.training['model']}, hyper-parameters {model.training['hparams']}"
    yield f"  seed {model.training['seed']}, batch size {model.training['batch_size']}"
    for ancestor in report.ancestors:
        yield f"  weights began with those of model {ancestor[:16]}"
    if not report.ancestors:
        yield "  weights began from scratch"
    known = {n: v for n, v in model.versions.items() if v}
    yield "code " + ", ".join(f"{name} {value}" for name, value in known.items())
    rows = ", ".join(f"{split} {count:,}" for split, count in data.rows.items())
    yield f"data {data.fingerprint[:16]}: {rows}"
    for date, (split, day) in data.days.items():
        yield f"  {date} {split:<5} dataset {day[:16]}"
    for file in data.files:
        yield f"  {file['path']}: {file['bytes']:,} bytes, SHA-256 {file['sha256']}"
    if report.run is not None:
        yield "flags:"
        yield from (f"  {line}" for line in report.run.flags.splitlines())
