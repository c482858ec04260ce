"""Batch prediction as a Beam pipeline: pieces of files to files of predictions.

What travels through Beam are pieces of files and what is reported of them, so that no
element exists per row, and a worker that dies loses pieces, which are tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from pipeline.prediction import pieces, version
from pipeline.prediction.job_run import PIECE
from pipeline.preprocess import beam_options, reports
from pipeline.preprocess.sources.base import FilePiece, Source

# Beam's DirectRunner would first look for another engine in the network.
_DEFAULT_RUNNER = "FnApiRunner"


class _Predict(beam.DoFn):
    """A piece to its report; the model is loaded once a worker."""

    def __init__(self, job: pieces.Job):
        self._job = job
        self._shared = Shared()

    def process(
        self, element: tuple[int, Source, FilePiece]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        job = self._job
        try:
            predictor = self._shared.acquire(lambda: version.Predictor(job.version))
            yield PIECE, pieces.predict(job, predictor, *element)
        except Exception as error:
            yield reports.FAILURE, reports.failure(error)


class _WriteReport(beam.DoFn):
    """Everything that was reported to one file."""

    def __init__(self, path: str):
        self._path = path

    def process(self, report: list[tuple[str, Any]]) -> None:
        reports.write(self._path, report)


def run(job: pieces.Job, elements: Sequence[tuple[int, Source, FilePiece]]) -> None:
    """Runs the pipeline over pieces; what it made stands in the report."""
    options = PipelineOptions(list(job.beam_options))
    asked = beam_options.parse(job.beam_options).runner
    with beam.Pipeline(
        runner=None if asked else _DEFAULT_RUNNER, options=options
    ) as pipeline:
        _ = (
            pipeline
            | "Pieces" >> beam.Create(elements)
            # Without it one worker would get all pieces.
            | "Distribute" >> beam.Reshuffle()
            | "Predict" >> beam.ParDo(_Predict(job))
            | "ListReports" >> beam.combiners.ToList()
            | "WriteReport" >> beam.ParDo(_WriteReport(job.report))
        )
