"""What came from what: an embedded store of datasets, runs, models and verdicts.

SQLite through SQLAlchemy's Core: the tables stand here once, as typed columns with their
foreign keys, and statements are composed rather than written as text. Records are only
ever added, each run's in one transaction; triggers refuse to change or remove any, so
that no run can touch another's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from pipeline.types import UserError

_VERSION = 1
_BUSY_SECONDS = 60

_metadata = sa.MetaData()
_datasets = sa.Table(
    "datasets",
    _metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, sa.CheckConstraint("kind in ('day', 'window')")),
    sa.Column("rows", sa.JSON, nullable=False),
    sa.Column("files", sa.JSON, nullable=False),
    sa.Column("declaration", sa.Text, nullable=False),
)
_days = sa.Table(
    "days_of_windows",
    _metadata,
    sa.Column("window", sa.ForeignKey("datasets.fingerprint"), primary_key=True),
    sa.Column("date", sa.Text, primary_key=True),
    sa.Column("split", sa.Text, nullable=False),
    sa.Column("dataset", sa.ForeignKey("datasets.fingerprint"), nullable=False),
)
_models = sa.Table(
    "models",
    _metadata,
    sa.Column("checkpoint", sa.Text, primary_key=True),
    sa.Column("dataset", sa.ForeignKey("datasets.fingerprint"), nullable=False),
    # May be of before the store was made, so it is no foreign key.
    sa.Column("warm_start", sa.Text),
    sa.Column("global_step", sa.Integer, nullable=False),
    sa.Column("training", sa.JSON, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
)
_runs = sa.Table(
    "runs",
    _metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run_date", sa.Text, nullable=False, index=True),
    sa.Column("request", sa.Text),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("exit_code", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("started", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("flags", sa.Text, nullable=False),
    sa.Column("dataset", sa.ForeignKey("datasets.fingerprint")),
    sa.Column("model", sa.ForeignKey("models.checkpoint")),
    sa.Column("champion", sa.Integer),
    sa.Column("verdict", sa.JSON),
    sa.Column("warnings", sa.JSON, nullable=False),
)
_publications = sa.Table(
    "publications",
    _metadata,
    sa.Column("directory", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("of", sa.Integer),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("run_date", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("published", sa.Text, nullable=False),
)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A day or a window.

    Attributes:
      fingerprint: Of its manifest.
      kind: "day" or "window".
      rows: Rows by split.
      files: Raw files with digests.
      declaration: Its feature declaration.
      days: Date to split and dataset, of a window.
    """

    fingerprint: str
    kind: str
    rows: Mapping[str, int]
    files: tuple[Mapping[str, Any], ...]
    declaration: str
    days: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Model:
    """A trained model.

    Attributes:
      checkpoint: Digest of its checkpoint.
      dataset: Fingerprint of what it was trained on.
      warm_start: Digest of the checkpoint it began with, or None.
      global_step: Its step.
      training: Model, hyper-parameters, seed and the like.
      versions: Of Python, packages and the source.
    """

    checkpoint: str
    dataset: str
    warm_start: str | None
    global_step: int
    training: Mapping[str, Any]
    versions: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Run:
    """A night, however it ended.

    Attributes:
      id: Of this start of the command.
      run_date: Its date.
      request: What was asked for: data, settings and code; None where it was not
        known yet.
      outcome: How it ended.
      exit_code: The command's.
      message: One line.
      started: When, local time.
      seconds: How long it took.
      host: Where.
      flags: A flagfile that repeats it.
      dataset: The window, or None.
      model: The candidate, or None.
      champion: Version of the champion that it was judged against, or None.
      verdict: The verdict file's content, or None.
      warnings: What the gates let pass with a warning.
    """

    id: str
    run_date: str
    request: str | None
    outcome: str
    exit_code: int
    message: str
    started: str
    seconds: float
    host: str
    flags: str
    dataset: str | None
    model: str | None
    champion: int | None
    verdict: Mapping[str, Any] | None
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Publication:
    """A version of a serving directory, as `registry.Published` describes it."""

    directory: str
    version: int
    of: int | None
    model: str
    request: str
    run_date: str
    verdict: str
    reason: str | None
    published: str


class Store:
    """The store in one file.

    Args:
      path: The file; made if it is not there.

    Raises:
      UserError: It is no store, or one of a later version.
    """

    def __init__(self, path: str):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._path = path
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=path),
            connect_args={"timeout": _BUSY_SECONDS},
            poolclass=sa.pool.NullPool,
        )
        sa.event.listen(self._engine, "connect", _on_connect)
        with self._explained(), self._engine.begin() as connection:
            found = connection.exec_driver_sql("pragma user_version").scalar()
            if found not in (0, _VERSION):
                raise UserError(
                    f"{path} is a store of version {found}; this program knows"
                    f" {_VERSION}"
                )
            if found == 0:
                _create(connection)

    def add(
        self,
        run: Run,
        datasets: tuple[Dataset, ...] = (),
        model: Model | None = None,
        publications: tuple[Publication, ...] = (),
    ) -> None:
        """Adds a run and what it made, all or nothing.

        What is there already, of an earlier try, stays as it is.
        """
        with self._explained(), self._engine.begin() as connection:
            for dataset in datasets:
                _add_dataset(connection, dataset)
            if model is not None:
                _insert(connection, _models, dataclasses.asdict(model))
            for publication in publications:
                _insert(connection, _publications, dataclasses.asdict(publication))
            _insert(connection, _runs, dataclasses.asdict(run))

    def add_publications(self, publications: tuple[Publication, ...]) -> None:
        """Adds versions; those that are there stay as they are."""
        with self._explained(), self._engine.begin() as connection:
            for publication in publications:
                _insert(connection, _publications, dataclasses.asdict(publication))

    def runs(self, last: int, run_date: str | None = None) -> list[Run]:
        """Returns the last runs, oldest first; of one date if one is given."""
        # In the order in which they were added: clocks may go back.
        query = sa.select(_runs).order_by(sa.text("rowid desc")).limit(last)
        if run_date is not None:
            query = query.where(_runs.c.run_date == run_date)
        return [_run(row) for row in reversed(self._rows(query))]

    def runs_of(self, request: str, outcomes: tuple[str, ...]) -> list[Run]:
        """Returns the runs of a request that ended so, oldest first."""
        query = (
            sa.select(_runs)
            .where(_runs.c.request == request, _runs.c.outcome.in_(outcomes))
            .order_by(sa.text("rowid"))
        )
        return [_run(row) for row in self._rows(query)]

    def publication(self, directory: str, version: int) -> Publication | None:
        query = sa.select(_publications).where(
            _publications.c.directory == directory, _publications.c.version == version
        )
        return next((Publication(**row) for row in self._rows(query)), None)

    def model(self, checkpoint: str) -> Model | None:
        query = sa.select(_models).where(_models.c.checkpoint == checkpoint)
        return next((Model(**row) for row in self._rows(query)), None)

    def dataset(self, fingerprint: str) -> Dataset | None:
        query = sa.select(_datasets).where(_datasets.c.fingerprint == fingerprint)
        for row in self._rows(query):
            days = sa.select(_days).where(_days.c.window == fingerprint)
            found = self._rows(days.order_by(_days.c.date))
            row["files"] = tuple(row["files"])
            return Dataset(
                **row, days={d["date"]: (d["split"], d["dataset"]) for d in found}
            )
        return None

    def _rows(self, query: sa.Select) -> list[dict[str, Any]]:
        with self._explained(), self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DatabaseError as error:
            raise UserError(
                f"the store of lineage {self._path} cannot be used: {error.orig}"
            ) from error


def _on_connect(connection, _) -> None:
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")


def _create(connection: sa.Connection) -> None:
    _metadata.create_all(connection)
    for table in _metadata.sorted_tables:
        for action in ("update", "delete"):
            connection.exec_driver_sql(
                f"create trigger if not exists {table.name}_no_{action}"
                f" before {action} on {table.name} begin"
                " select raise(abort, 'records are only ever added'); end"
            )
    connection.exec_driver_sql(f"pragma user_version = {_VERSION}")


def _insert(connection: sa.Connection, table: sa.Table, values: dict) -> None:
    connection.execute(sqlite.insert(table).values(values).on_conflict_do_nothing())


def _add_dataset(connection: sa.Connection, dataset: Dataset) -> None:
    values = {f.name: getattr(dataset, f.name) for f in dataclasses.fields(dataset)}
    days = values.pop("days")
    _insert(connection, _datasets, {**values, "rows": dict(dataset.rows)})
    for date, (split, day) in days.items():
        row = {"window": dataset.fingerprint, "date": date, "split": split}
        _insert(connection, _days, {**row, "dataset": day})


def _run(row: dict[str, Any]) -> Run:
    return Run(**{**row, "warnings": tuple(row["warnings"])})
