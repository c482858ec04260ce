"""Times the steps of a training as users start it: alone, by a strategy, as a cluster.

Arguments: OUTPUT DATASET COMMAND, e.g. "train --strategy=one_device". Time is taken
from the event file, behind a warm-up, so neither starting nor making graphs counts.
"""

from __future__ import annotations

import glob
import os
import shlex
import subprocess
import sys

from benchmarks import measure

BATCH_SIZE = 512
STEPS = 800
_WARM_UP_STEPS = 100
_EVERY_STEPS = 50


def _times(directory: str) -> list[tuple[int, float]]:
    """Returns steps and when they were done, of those at which summaries are written."""
    from pipeline.compat import tf

    found = []
    for path in glob.glob(os.path.join(directory, "events.*")):
        for event in tf.compat.v1.train.summary_iterator(path):
            tags = [value.tag for value in event.summary.value]
            if "global_step/sec" in tags and event.step >= _WARM_UP_STEPS:
                found.append((event.step, event.wall_time))
    return sorted(found)


def main(output: str, dataset: str, command: str) -> None:
    flags = [
        f"--dataset_dir={dataset}",
        f"--model_dir={output}",
        f"--batch_size={BATCH_SIZE}",
        f"--max_steps={STEPS}",
        f"--checkpoint_steps={STEPS}",
        f"--summary_steps={_EVERY_STEPS}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *shlex.split(command), *flags],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    (first, began), *_, (last, ended) = _times(output)
    measure.report((last - first) * BATCH_SIZE, ended - began, 0, 0)
