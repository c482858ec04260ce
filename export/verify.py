"""Verifies an exported SavedModel against the Estimator it came from."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from export import receivers, saved_model
from input_fns import parsing, records
from pipeline.compat import estimator, tf
from pipeline.types import Column, ColumnType, Declaration, ExitCode, UserError

TOLERANCE = 1e-5
_BATCH = 512
_PART_BATCHES = 64
_TIMEOUT_SECONDS = 1800
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verify_child.py")
_OWN_PACKAGES = ("pipeline", "input_fns", "model_fns", "export", "tensorflow_estimator")
_PACKAGE_DIRECTORIES = ("site-packages", "dist-packages")


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


def _raw_spec(columns: Sequence[Column]) -> dict[str, tf.io.FixedLenFeature]:
    """Returns how columns are read for a client: NaN or empty text for no value."""
    nothing = {ColumnType.FLOAT: math.nan, ColumnType.STRING: ""}
    spec = parsing.feature_spec(columns)
    for column in columns:
        if not column.required and column.type in nothing:
            spec[column.name] = spec[column.name]._replace(
                default_value=nothing[column.type]
            )
    return spec


class _CaseWriter:
    """Writes arrays for the child process."""

    def __init__(self, directory: str):
        self._directory = directory
        self._files = 0

    def _array(self, value: np.ndarray) -> dict[str, str]:
        # A proto rather than an op: a graph may be the default at the time.
        tensor = tf.make_tensor_proto(value)
        name = f"{self._files}.tensor"
        self._files += 1
        with open(os.path.join(self._directory, name), "wb") as f:
            f.write(tensor.SerializeToString())
        return {"file": name, "dtype": tf.dtypes.as_dtype(tensor.dtype).name}

    def arrays(self, values: Mapping[str, np.ndarray]) -> dict[str, dict[str, str]]:
        return {name: self._array(value) for name, value in values.items()}


def _part_sizes(rows: int) -> list[int]:
    """Divides rows into parts.

    All rows of a large split at once would fill the memory and break the limit of
    2 GiB for a serialized tensor.
    """
    size = _PART_BATCHES * _BATCH
    return [min(size, rows - start) for start in range(0, rows, size)]


def _write_expected(
    writer: _CaseWriter, predictions: Iterator[Mapping[str, np.ndarray]], rows: int
) -> list[dict]:
    """Writes what Estimator.predict says, by part."""
    parts = []
    for size in _part_sizes(rows):
        batches = list(itertools.islice(predictions, _PART_BATCHES))
        expected = {
            name: np.concatenate([batch[name] for batch in batches])[:size]
            for name in batches[0]
        }
        parts.append(writer.arrays(expected))
    return parts


def _write_inputs(
    writer: _CaseWriter, part: records.Records, columns: Sequence[Column], rows: int
) -> list[dict]:
    """Writes the inputs of both signatures, by part."""
    spec = _raw_spec(columns)
    serialized = records.serialized_rows(part, columns)
    parts = []
    for size in _part_sizes(rows):
        examples = np.array(list(itertools.islice(serialized, size)), object)
        raw = tf.io.parse_example(tf.constant(examples), spec)
        inputs = {
            saved_model.SERVING_DEFAULT: {receivers.EXAMPLES: examples},
            saved_model.PREDICT: {name: value.numpy() for name, value in raw.items()},
        }
        parts.append({name: writer.arrays(value) for name, value in inputs.items()})
    return parts


def _fail(message: str) -> NoReturn:
    raise UserError(f"verify: {message}", ExitCode.VERIFY_FAILED)


def _run_child(model_dir: str, case_dir: str) -> dict:
    packages = [
        p for p in sys.path if os.path.basename(p.rstrip("/")) in _PACKAGE_DIRECTORIES
    ]
    try:
        # -I: neither PYTHONPATH nor the working directory reach the child.
        done = subprocess.run(
            [sys.executable, "-I", _CHILD, model_dir, case_dir, *packages],
            cwd=case_dir,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        _fail(
            f"the exported model gave no answer in {_TIMEOUT_SECONDS} seconds in a"
            " fresh process; try fewer --verify_rows"
        )
    if done.returncode < 0:
        _fail(
            "the fresh process with the exported model was ended by"
            f" {signal.Signals(-done.returncode).name}; there may be too little memory"
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        _fail(f"the exported model failed in a fresh process: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])


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
    on real rows with their missing and unknown values. Where two classes are equally
    probable, either may be the predicted one.

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
    with tempfile.TemporaryDirectory() as case_dir:
        writer = _CaseWriter(case_dir)
        predictions = trained.predict(
            records.eval_input_fn(part, declaration, _BATCH),
            checkpoint_path=checkpoint,
            yield_single_examples=False,
        )
        with contextlib.closing(predictions):
            expected = _write_expected(writer, predictions, rows)
        inputs = _write_inputs(writer, part, declaration.input_columns, rows)
        parts = [
            {"rows": size, "expected": wanted, "inputs": given}
            for size, wanted, given in zip(
                _part_sizes(rows), expected, inputs, strict=True
            )
        ]
        case = {
            "batch": _BATCH,
            "tolerance": TOLERANCE,
            "parts": parts,
            "must_not_be_imported": _OWN_PACKAGES,
        }
        with open(os.path.join(case_dir, "case.json"), "w", encoding="utf-8") as f:
            json.dump(case, f)
        outcome = _run_child(os.path.abspath(model_dir), case_dir)
    if outcome["project_modules"]:
        raise RuntimeError(f"the child imported {outcome['project_modules']}")
    if outcome["wrong"]:
        _fail(
            f"{outcome['wrong'][0]}; a difference of {TOLERANCE:g} is allowed"
            + (f" ({len(outcome['wrong']) - 1} more)" if outcome["wrong"][1:] else "")
        )
    largest = outcome["largest"]
    return Verification(rows, tuple(largest), max(largest.values()))
