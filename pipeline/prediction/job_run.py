"""Runs a job of predictions: one worker in this process, others through Beam."""

from __future__ import annotations

from pipeline.prediction import pieces, version
from pipeline.preprocess import beam_options, reports
from pipeline.preprocess.sources import planning

PIECE = "piece"


def run(job: pieces.Job) -> None:
    """Predicts all pieces and writes the report.

    Beam distributes pieces and does nothing else, so with one worker there is nothing
    for it to do, and its seconds are spared.
    """
    workers = beam_options.parse(job.beam_options).workers
    elements = planning.pieces(job.sources, workers, job.piece_bytes)
    if workers == 1:
        predictor = version.Predictor(job.version)
        reports.write(
            job.report,
            [(PIECE, pieces.predict(job, predictor, *one)) for one in elements],
        )
        return
    from pipeline.prediction import beam_job

    beam_job.run(job, elements)
