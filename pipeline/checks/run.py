"""The check command: a dataset against a schema and an earlier dataset."""

from __future__ import annotations

import dataclasses
import os

from pipeline import files
from pipeline.checks import anomalies, report
from pipeline.checks.report import Report
from pipeline.dataset import open_dataset
from pipeline.flags.checks import CheckFlags
from pipeline.preprocess import merge
from pipeline.preprocess import schema as schemas
from pipeline.preprocess.schema import FeatureSchema
from pipeline.types import Declaration, UserError

_OUTPUTS = (".json", ".pbtxt")


def check_output(path: str | None) -> None:
    """Raises UserError unless the report can be written in the form asked for."""
    if path is None:
        return
    if not path.endswith(_OUTPUTS):
        raise UserError(
            f"--output: {path} must end in .json (report) or .pbtxt (TensorFlow"
            " Metadata Anomalies)"
        )
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise UserError(f"--output: there is no directory for {path}")


def schema_of(declaration: Declaration, path: str | None) -> dict[str, FeatureSchema]:
    """Returns the rules for columns: those of a schema, or the declaration's own."""
    if path is not None:
        return schemas.read(path)
    # Its own domains have been enforced by preprocess, which also allows defaults.
    return {
        name: dataclasses.replace(
            schemas.of_column(column), min=None, max=None, values=None
        )
        for name, column in declaration.columns.items()
    }


def thresholds(
    declaration: Declaration, schema: dict[str, FeatureSchema], default: float
) -> dict[str, float]:
    """Returns the distance by which each column may drift."""
    found = {}
    for name, column in declaration.columns.items():
        rules = schema.get(name)
        own = column.drift if rules is None or rules.drift is None else rules.drift
        found[name] = default if own is None else own
    return found


def check(directory: str, settings: CheckFlags, schema_path: str | None) -> Report:
    """Checks all rows of a dataset.

    Raises:
      UserError: A dataset or the schema cannot be read.
    """
    dataset = open_dataset(directory)
    schema = schema_of(dataset.declaration, schema_path)
    columns = merge.merge_statistics([directory]).all_rows()
    found = list(anomalies.against_schema(columns, schema))
    drifts: list[anomalies.Drift] = []
    earlier_rows = None
    if settings.against is not None:
        open_dataset(settings.against)
        earlier = merge.merge_statistics([settings.against]).all_rows()
        earlier_rows = anomalies.rows(earlier)
        limits = thresholds(dataset.declaration, schema, settings.drift_threshold)
        drifts = list(anomalies.drifts(columns, earlier, limits))
        found += anomalies.against_earlier(
            columns, earlier, drifts, settings.row_factor
        )
    return Report(
        directory,
        settings.against,
        schema_path,
        anomalies.rows(columns),
        earlier_rows,
        tuple(found),
        tuple(drifts),
    )


def write(result: Report, path: str) -> None:
    """Writes a report as JSON or as Anomalies, by the path's ending."""
    if path.endswith(".json"):
        files.write_atomically(path, report.to_json(result))
        return
    declaration = open_dataset(result.dataset).declaration
    files.write_atomically(path, report.to_pbtxt(result, schemas.to_proto(declaration)))
