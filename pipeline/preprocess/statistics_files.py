"""All files of a dataset's statistics."""

from __future__ import annotations

import os

from pipeline import files
from pipeline.dataset import (
    ACCUMULATORS_FILE,
    STATISTICS_FILE,
    STATISTICS_PROTO_FILE,
)
from pipeline.preprocess import accumulators, statistics_proto
from pipeline.preprocess.statistics import DatasetStatistics


def write(directory: str, statistics: DatasetStatistics) -> None:
    """Writes the results for people and for TFDV, and the accumulators."""
    files.write_json(
        os.path.join(directory, STATISTICS_FILE), statistics.summary().to_json()
    )
    files.write_atomically(
        os.path.join(directory, STATISTICS_PROTO_FILE),
        statistics_proto.to_bytes(statistics),
    )
    accumulators.write(os.path.join(directory, ACCUMULATORS_FILE), statistics)
