"""Loads a SavedModel as a stranger would, and compares its answers.

Runs as a program of its own, in a process that knows nothing of this project:

    python -I verify_child.py MODEL_DIR CASE_DIR [PACKAGES_DIR ...]

CASE_DIR holds what `verify.py` wrote. The last line printed is a JSON object with
the largest difference by signature, and a list of what is wrong.
"""

import importlib.util
import json
import os
import sys

# -I takes away the user's own directory of packages, where TensorFlow may be.
sys.path.extend(sys.argv[3:])

import numpy as np
import tensorflow as tf


def _read(case_dir: str, entry: dict) -> tf.Tensor:
    serialized = tf.io.read_file(os.path.join(case_dir, entry["file"]))
    return tf.io.parse_tensor(serialized, tf.dtypes.as_dtype(entry["dtype"]))


def _is_float(value: np.ndarray) -> bool:
    return np.issubdtype(value.dtype, np.floating)


def _ties(wanted: dict, output: str, tolerance: float) -> np.ndarray | None:
    """Returns the rows whose two best classes are equally probable.

    Args:
      output: With several labels, LABEL/NAME.
    """
    probabilities = wanted.get(output.rpartition("/")[0] + "/probabilities")
    if "/" not in output:
        probabilities = wanted.get("probabilities")
    if probabilities is None or probabilities.ndim != 2 or probabilities.shape[1] < 2:
        return None
    best = np.sort(probabilities, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0] <= 2 * tolerance


def _differences(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Returns differences, relative where values exceed 1; infinity if they are none."""
    if not _is_float(wanted):
        return np.where(found == wanted, 0.0, np.inf)
    finite = np.isfinite(found) & np.isfinite(wanted)
    wanted_or_0 = np.where(finite, wanted, 0)
    difference = np.abs(np.where(finite, found, 0) - wanted_or_0)
    return np.where(finite, difference / np.maximum(1, np.abs(wanted_or_0)), np.inf)


def _compare(
    found: np.ndarray | None,
    wanted: np.ndarray,
    ties: np.ndarray | None,
    tolerance: float,
) -> tuple[float, str]:
    """Returns the largest difference, and what is wrong ("" if nothing is)."""
    if found is None:
        return 0.0, "is not there"
    if found.shape != wanted.shape or _is_float(found) != _is_float(wanted):
        return 0.0, (
            f"is {found.dtype} of shape {list(found.shape)} instead of"
            f" {wanted.dtype} of shape {list(wanted.shape)}"
        )
    if not wanted.size:
        return 0.0, ""
    differences = _differences(found, wanted).reshape(len(wanted), -1).max(axis=1)
    if not _is_float(wanted) and ties is not None:
        # Rounding decides these.
        differences[ties] = 0.0
    largest = float(differences.max())
    if largest <= tolerance:
        return largest, ""
    row = int(differences.argmax())
    return largest, (
        f"differs from Estimator.predict in {int((differences > tolerance).sum())} of"
        f" {len(wanted)} rows, most in row {row}: {found[row].tolist()} instead of"
        f" {wanted[row].tolist()}"
    )


def _answers(signature, inputs: dict, rows: int, batch: int) -> dict:
    parts = []
    for start in range(0, rows, batch):
        part = {name: value[start : start + batch] for name, value in inputs.items()}
        parts.append({k: v.numpy() for k, v in signature(**part).items()})
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _verify_requests():
    """Loads the file beside this one; none of the project is on the path."""
    path = os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "verify_requests.py"
    )
    spec = importlib.util.spec_from_file_location("verify_requests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _try_requests(model, model_dir: str, case_dir: str, case: dict) -> list[str]:
    """Returns what is wrong beside the rows of the split."""
    requests = _verify_requests()
    part = case["parts"][-1]
    wanted = {n: _read(case_dir, e).numpy() for n, e in part["expected"].items()}
    inputs = {
        name: {n: _read(case_dir, e) for n, e in entries.items()}
        for name, entries in part["inputs"].items()
    }

    def compare(output: str, found: np.ndarray, rows: dict) -> str:
        value = rows[output]
        ties = _ties(rows, output, case["tolerance"])
        if ties is None and not _is_float(value):
            # Of what is not known to follow from probabilities rounding may decide,
            # which differs between sizes of batches.
            same = found.shape == value.shape
            return "" if same else f"has shape {list(found.shape)}"
        return _compare(found, value, ties, case["tolerance"])[1]

    wrong = []
    for name, given in inputs.items():
        wrong += requests.batches(
            model.signatures[name], name, given, wanted, case["batches"], compare
        )
    wrong += requests.v1_loader(model_dir, inputs, wanted, compare)
    examples, columns = inputs
    wrong += requests.wrong_columns(model.signatures[columns], columns, inputs[columns])
    return wrong + requests.refusals(model.signatures[examples], case["refused"])


def main(model_dir: str, case_dir: str) -> None:
    with open(os.path.join(case_dir, "case.json"), encoding="utf-8") as f:
        case = json.load(f)
    tolerance = case["tolerance"]
    model = tf.saved_model.load(model_dir)
    largest: dict[str, float] = {}
    wrong: list[str] = []
    for part in case["parts"]:
        wanted = {n: _read(case_dir, e).numpy() for n, e in part["expected"].items()}
        for name, entries in part["inputs"].items():
            if name not in model.signatures:
                wrong.append(f"signature {name} is not there")
                continue
            inputs = {n: _read(case_dir, e) for n, e in entries.items()}
            found = _answers(
                model.signatures[name], inputs, part["rows"], case["batch"]
            )
            for output, value in wanted.items():
                ties = _ties(wanted, output, tolerance)
                difference, problem = _compare(
                    found.get(output), value, ties, tolerance
                )
                largest[name] = max(largest.get(name, 0.0), difference)
                if problem:
                    wrong.append(f"output {output} of signature {name} {problem}")
        if wrong:
            break
    if not wrong:
        wrong = _try_requests(model, model_dir, case_dir, case)
    own = [m for m in sys.modules if m.split(".")[0] in case["must_not_be_imported"]]
    print(json.dumps({"largest": largest, "wrong": wrong, "project_modules": own}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
