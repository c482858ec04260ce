"""The preprocess stage as users run it.

Arguments: OUTPUT FORM PATTERN [BEAM_OPTION ...]
"""

from __future__ import annotations

import os

from benchmarks import measure

DECLARATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flights.yaml")


def main(output: str, form: str, pattern: str, *beam_options: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.set_verbosity(0)
        environment.load_tensorflow(0)
        from pipeline.console import Console
        from pipeline.flags.data import DataFlags
        from pipeline.preprocess import beam_job, stage  # noqa: F401

        import_seconds = elapsed()
    settings = DataFlags(
        input=pattern,
        features=DECLARATION,
        label=None,
        max_reject_fraction=0.01,
        shard_mb=64,
        beam_options=beam_options,
        record_form=form,
    )
    with measure.stopwatch() as elapsed:
        manifest = stage.run(output, stage.plan(settings), Console(-1))
        seconds = elapsed()
    rows = sum(manifest.results["rows_written"].values())
    # Two workers and the process that leads them; no workers, no such process.
    workers = 3 if beam_options else 0
    measure.report(rows, seconds, import_seconds, measure.size_of(output), workers)
