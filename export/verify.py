"""Verifies an exported SavedModel against the Estimator it came from."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import numpy as np

from export import receivers, saved_model
from input_fns import parsing, records
from pipeline.compat import estimator, tf
from pipeline.types import Column, ColumnType, Declaration, ExitCode, UserError

TOLERANCE = 1e-5
_BATCH = 512
_TIMEOUT_SECONDS = 600
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verify_child.py")
_OWN_PACKAGES = ("pipeline", "input_fns", "model_fns", "export", "tensorflow_estimator")


@dataclasses.dataclass(frozen=True)
class Verification:
    """The outcome.

    Attributes:
      rows: Rows compared.
      signatures: Signatures compared.
      largest_difference: Over all float outputs; relative where a value exceeds 1.
    """

    rows: int
    signatures: tuple[str, ...]
    largest_difference: float


def _expected(
    trained: estimator.Estimator,
    checkpoint: str,
    part: records.Records,
    declaration: Declaration,
    rows: int,
) -> dict[str, np.ndarray]:
    predictions = trained.predict(
        records.eval_input_fn(part, declaration, _BATCH),
        checkpoint_path=checkpoint,
        yield_single_examples=False,
    )
    batches = []
    taken = 0
    for batch in predictions:
        batches.append(batch)
        taken += _BATCH
        if taken >= rows:
            break
    return {
        name: np.concatenate([b[name] for b in batches])[:rows] for name in batches[0]
    }


def _raw_columns(
    serialized: Sequence[bytes], columns: Sequence[Column]
) -> dict[str, tf.Tensor]:
    """Returns columns as a client sends them: NaN or empty text for no value."""
    nothing = {ColumnType.FLOAT: math.nan, ColumnType.STRING: ""}
    spec = parsing.feature_spec(
        column
        if column.required
        else dataclasses.replace(
            column, default=nothing.get(column.type, column.default)
        )
        for column in columns
    )
    return tf.io.parse_example(tf.constant(serialized), spec)


class _CaseWriter:
    """Writes tensors for the child process."""

    def __init__(self, directory: str):
        self._directory = directory
        self._files = 0

    def tensor(self, value: tf.Tensor | np.ndarray) -> dict[str, str]:
        tensor = tf.convert_to_tensor(value)
        name = f"{self._files}.tensor"
        self._files += 1
        tf.io.write_file(
            os.path.join(self._directory, name), tf.io.serialize_tensor(tensor)
        )
        return {"file": name, "dtype": tensor.dtype.name}

    def tensors(self, values: Mapping[str, tf.Tensor | np.ndarray]):
        return {name: self.tensor(value) for name, value in values.items()}


def _run_child(model_dir: str, case_dir: str) -> dict:
    # -I: no environment and no path of this process reaches the child.
    done = subprocess.run(
        [sys.executable, "-I", _CHILD, model_dir, case_dir],
        cwd=case_dir,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(
            f"verify: the exported model failed in a fresh process: {last}",
            ExitCode.VERIFY_FAILED,
        )
    return json.loads(done.stdout.strip().splitlines()[-1])


def _largest(differences: Mapping[str, Mapping[str, float | None]]) -> float:
    largest = 0.0
    for signature, outputs in differences.items():
        for output, difference in outputs.items():
            if difference is None:
                raise UserError(
                    f"verify: signature {signature} lacks the output {output}",
                    ExitCode.VERIFY_FAILED,
                )
            if not difference <= TOLERANCE:
                raise UserError(
                    f"verify: output {output} of signature {signature} differs from"
                    f" Estimator.predict by {difference:g}, allowed is {TOLERANCE:g}",
                    ExitCode.VERIFY_FAILED,
                )
            largest = max(largest, difference)
    return largest


def verify(
    model_dir: str,
    trained: estimator.Estimator,
    checkpoint: str,
    part: records.Records,
    declaration: Declaration,
    rows: int,
) -> Verification:
    """Compares a SavedModel, loaded in a fresh process, with `Estimator.predict`.

    The signatures that take serialized Examples and raw tensors are both compared,
    on real rows with their missing and unknown values.

    Args:
      model_dir: The SavedModel.
      trained: The Estimator it was exported from.
      checkpoint: The checkpoint it was exported from.
      part: Records to compare on.
      declaration: Of the records.
      rows: How many rows to compare at most; 0 means all.

    Raises:
      UserError: They differ, or the model does not load (exit code VERIFY_FAILED).
    """
    rows = min(rows or part.rows, part.rows)
    expected = _expected(trained, checkpoint, part, declaration, rows)
    serialized = records.serialized_rows(part, declaration, rows)
    raw = _raw_columns(serialized, declaration.input_columns)
    with tempfile.TemporaryDirectory() as case_dir:
        writer = _CaseWriter(case_dir)
        case = {
            "rows": rows,
            "batch": _BATCH,
            "expected": writer.tensors(expected),
            "inputs": {
                saved_model.SERVING_DEFAULT: writer.tensors(
                    {receivers.EXAMPLES: np.array(serialized, object)}
                ),
                saved_model.PREDICT: writer.tensors(raw),
            },
            "must_not_be_imported": _OWN_PACKAGES,
        }
        with open(os.path.join(case_dir, "case.json"), "w", encoding="utf-8") as f:
            json.dump(case, f)
        outcome = _run_child(os.path.abspath(model_dir), case_dir)
    if outcome["project_modules"]:
        raise RuntimeError(f"the child imported {outcome['project_modules']}")
    largest = _largest(outcome["differences"])
    return Verification(rows, tuple(outcome["differences"]), largest)
