"""The result of a check: for people, as JSON, and as TensorFlow Metadata Anomalies."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from pipeline.checks.anomalies import Anomaly, Drift


@dataclasses.dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
      dataset: The dataset's directory.
      against: The earlier dataset's; None where there was none.
      schema: Path of the schema; None for the dataset's own declaration.
      rows: Rows in the dataset.
      earlier_rows: Rows in the earlier one.
      anomalies: What is over its limit.
      drifts: The distance of each compared column.
    """

    dataset: str
    against: str | None
    schema: str | None
    rows: int
    earlier_rows: int | None
    anomalies: tuple[Anomaly, ...]
    drifts: tuple[Drift, ...]


def to_lines(report: Report) -> Iterator[str]:
    """Yields the report as text, the farthest columns first."""
    yield f"dataset {report.dataset}, {report.rows:,} rows"
    yield f"  schema: {report.schema or 'its own declaration'}"
    if report.against is not None:
        yield f"  against: {report.against}, {report.earlier_rows:,} rows"
        yield "distances (0 equal, 1 farthest):"
        width = max((len(drift.column) for drift in report.drifts), default=0)
        for drift in sorted(report.drifts, key=lambda d: -d.distance):
            mark = "  OVER" if drift.distance > drift.threshold else ""
            yield (
                f"  {drift.column:<{width}}  {drift.distance:.4f}  limit"
                f" {drift.threshold:<6g} {drift.measure}{mark}"
            )
    if not report.anomalies:
        yield "no anomalies"
        return
    yield f"{len(report.anomalies)} anomalies:"
    for anomaly in report.anomalies:
        where = "dataset" if anomaly.column is None else f"column {anomaly.column}"
        yield f"  {where}: {anomaly.message} [{anomaly.kind.value}]"


def to_json(report: Report) -> str:
    """Returns the report as JSON."""
    value = dataclasses.asdict(report)
    for anomaly in value["anomalies"]:
        anomaly["kind"] = anomaly["kind"].value
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def to_pbtxt(report: Report, baseline: schema_pb2.Schema) -> str:
    """Returns an Anomalies message as protobuf text, as TFDV writes it."""
    result = anomalies_pb2.Anomalies(
        baseline=baseline,
        anomaly_name_format=anomalies_pb2.Anomalies.SERIALIZED_PATH,
    )
    for anomaly in report.anomalies:
        if anomaly.column is None:
            info = result.dataset_anomaly_info
        else:
            info = result.anomaly_info[anomaly.column]
            info.path.step[:] = [anomaly.column]
        info.severity = anomalies_pb2.AnomalyInfo.ERROR
        info.reason.add(
            type=anomaly.kind.value,
            short_description=anomaly.kind.value,
            description=anomaly.message,
        )
        descriptions = [reason.description for reason in info.reason]
        info.description = "; ".join(descriptions)
        info.short_description = (
            anomaly.kind.value if len(descriptions) == 1 else "Multiple errors"
        )
    return text_format.MessageToString(result, as_utf8=True)
