"""Loads a SavedModel as a stranger would, and compares its answers.

Runs as a program of its own, in a process that knows nothing of this project:

    python -I verify_child.py MODEL_DIR CASE_DIR

CASE_DIR holds what `verify.py` wrote. The last line printed is a JSON object with
the largest difference by signature and output.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf


def _read(case_dir: str, entry: dict) -> tf.Tensor:
    serialized = tf.io.read_file(os.path.join(case_dir, entry["file"]))
    return tf.io.parse_tensor(serialized, tf.dtypes.as_dtype(entry["dtype"]))


def _difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the largest difference, relative where values exceed 1."""
    if found.shape != wanted.shape:
        return float("inf")
    if not np.issubdtype(wanted.dtype, np.floating):
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    if not wanted.size:
        return 0.0
    if not np.isfinite(found).all() or not np.isfinite(wanted).all():
        return float("inf")
    return float(np.max(np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))))


def _answers(signature, inputs: dict, rows: int, batch: int) -> dict:
    parts = []
    for start in range(0, rows, batch):
        part = {name: value[start : start + batch] for name, value in inputs.items()}
        parts.append({k: v.numpy() for k, v in signature(**part).items()})
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def main(model_dir: str, case_dir: str) -> None:
    with open(os.path.join(case_dir, "case.json"), encoding="utf-8") as f:
        case = json.load(f)
    model = tf.saved_model.load(model_dir)
    wanted = {n: _read(case_dir, e).numpy() for n, e in case["expected"].items()}
    differences = {}
    for name, entries in case["inputs"].items():
        inputs = {n: _read(case_dir, e) for n, e in entries.items()}
        found = _answers(model.signatures[name], inputs, case["rows"], case["batch"])
        differences[name] = {
            output: _difference(found[output], value) if output in found else None
            for output, value in wanted.items()
        }
    own = [m for m in sys.modules if m.split(".")[0] in case["must_not_be_imported"]]
    print(json.dumps({"differences": differences, "project_modules": own}))


if __name__ == "__main__":
    main(*sys.argv[1:])
