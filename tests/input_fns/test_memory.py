"""Memory does not grow with the number of rows (trial INP-1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINDOW_MB = 16
# Windows that are held, and what is in flight between them: blocks of 512 rows of
# 100 KB each are 50 MB apiece.
BOUND_MB = {"rows": 3 * WINDOW_MB + 150, "blocks": 3 * WINDOW_MB + 400}
CHILD = """
import gc, hashlib, json, os, resource, sys
sys.path[:0] = [{tests!r}]
from helpers_records import column, declare, write_blocks, write_records
from input_fns.options import TrainInput
from input_fns.order import eval_input_fn, train_input_fn
from input_fns.records import Records
from pipeline.compat import tf
from pipeline.types import Hashed, Numeric, RecordForm

directory, form, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
columns = (column("id", "int"), column("s", "string"))
declaration = declare(columns, [Numeric("id", "id"), Hashed("s", "s", 5)])
text = os.urandom(100_000)
write = write_blocks if form == "blocks" else write_records
child = os.fork()
if not child:  # What writing takes is not to be measured.
    for part in range(2):
        there = [
            {{"id": part * rows // 2 + i, "s": text}} for i in range(rows // 2)
        ]
        place = f"{{directory}}/{{part}}"
        os.makedirs(place)
        write(place, [there] if form == "blocks" else there, columns)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
files = sorted(tf.io.gfile.glob(f"{{directory}}/*/*"))
size = sum(map(os.path.getsize, files))
records = Records(tuple(files), rows, RecordForm(form), (rows // 2,) * 2, size)
window = {window} * 2**20 // 100_000

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def drawn(seed):
    options = TrainInput(32, window, seed, epochs=2)
    ids = []
    for batch in train_input_fn(records, declaration, options)():
        ids += batch["id"].numpy().tolist()
    return ids

before = resident()
once, again = drawn(1), drawn(1)
evaluations = []
for _ in range(10):
    for batch in eval_input_fn(records, declaration, 32)():
        pass
    del batch
    gc.collect()
    evaluations.append(resident())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{
    "peak": peak - before,
    "evaluations": evaluations,
    "same": once == again,
    "epochs": [once[:rows], once[rows:]],
}}))
"""


def _run(directory, form: str, rows: int) -> dict:
    program = CHILD.format(tests=str(ROOT / "tests"), window=WINDOW_MB)
    done = subprocess.run(
        [sys.executable, "-c", program, str(directory), form, str(rows)],
        # One arena: what threads leave free in theirs is no use of the input's.
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "MALLOC_ARENA_MAX": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["rows", "blocks"])
def test_INP_1_peak_memory_is_bounded_by_the_window(tmp_path, form):
    few = _run(tmp_path / "few", form, 1024)
    many = _run(tmp_path / "many", form, 3072)
    for found in (few, many):
        assert found["peak"] < BOUND_MB[form]
        # Resident memory after the tenth evaluation and after the second.
        assert found["evaluations"][9] < 1.1 * found["evaluations"][1]
        first, second = found["epochs"]
        assert first != second and sorted(first) == sorted(second)
        assert found["same"]
    # Three times the rows, 200 MB more of them.
    assert many["peak"] < few["peak"] + 100
