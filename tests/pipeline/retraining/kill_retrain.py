"""Kills a night at random moments, many times; no test, run it by hand.

    python tests/pipeline/retraining/kill_retrain.py WORK_DIR [TRIES] [SEED]

A try is a night that is started and killed (SIGKILL) one to three times, each at a random
moment of its usual length, and then left alone. It must end with the champion of an
undisturbed night, in one whole version, with one finished run in the store. A line a try.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[2])]

import helpers_nights  # noqa: E402

from pipeline.retraining.lineage import Store  # noqa: E402
from pipeline.retraining.outcome import FINAL  # noqa: E402

NIGHT = 5
_FINISHED = tuple(end.value for end in FINAL)


def _run(root: Path, seconds: float | None) -> tuple[int, str]:
    """Runs a night; returns its exit code and what it said last."""
    process = helpers_nights.start(root, NIGHT)
    if seconds is not None:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=1200)
    return process.returncode, (said.splitlines() or ["nothing yet"])[-1]


def _prepare(root: Path) -> Path:
    for number in range(NIGHT + 1):
        helpers_nights.deliver(root, number)
    return root


def _check(root: Path, wanted: str) -> str:
    """Returns what is wrong, or ""."""
    champion = helpers_nights.champion(root)
    if champion.get("model") != wanted:
        return f"another champion: {champion}"
    serving = root / "work/serving/keras_wide_deep"
    names = sorted(os.listdir(serving))
    if names != sorted([str(champion["version"]), "champion.json", ".versions.lock"]):
        return f"left behind: {names}"
    runs = Store(str(root / "work/retrain/lineage.sqlite")).runs(99)
    if [run.outcome for run in runs if run.outcome in _FINISHED] != ["published"]:
        return f"runs: {[run.outcome for run in runs]}"
    return ""


def main(work: Path, tries: int, seed: int) -> int:
    draw = random.Random(seed)
    quiet = _prepare(work / "quiet")
    began = time.monotonic()
    code, said = _run(quiet, None)
    length = time.monotonic() - began
    if code:
        raise SystemExit(f"an undisturbed night failed: {code}: {said}")
    wanted = helpers_nights.champion(quiet)["model"]
    print(f"undisturbed: {length:.1f} s", flush=True)
    wrong = kills = 0
    for number in range(tries):
        root = _prepare(work / f"try{number}")
        moments = []
        for _ in range(draw.randint(1, 3)):
            code, said = _run(root, draw.uniform(0.5, length))
            if code != -signal.SIGKILL:
                break
            kills += 1
            moments.append(said.split(":")[0])
        code, said = _run(root, None)
        problem = "" if code in (0, 10) else f"exit code {code}: {said}"
        problem = problem or _check(root, wanted)
        wrong += bool(problem)
        print(f"try {number}: killed in {', '.join(moments)}: {problem or 'fine'}")
        sys.stdout.flush()
        if not problem:
            shutil.rmtree(root)
    print(f"{tries} tries, {kills} kills, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    given = (sys.argv[2:] + ["20", "1"][len(sys.argv) - 2 :])[:2]
    sys.exit(main(Path(sys.argv[1]), int(given[0]), int(given[1])))
