"""Verifies an exported SavedModel against the Estimator it came from."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from export import probes, receivers, requests, saved_model
from input_fns import parsing, records
from pipeline.compat import estimator, tf
from pipeline.types import Column, Declaration, ExitCode, UserError

TOLERANCE = 1e-5
_BATCH = 512
_PART_BATCHES = 64
BATCHES = (0, 1, 3, 1000)
"""Sizes of batches that are tried beside those of the comparison."""
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


def _expected(
    predictions: Iterator[Mapping[str, np.ndarray]], batches: int, rows: int
) -> dict[str, np.ndarray]:
    """Returns what Estimator.predict says of the next rows."""
    found = list(itertools.islice(predictions, batches))
    return {
        name: np.concatenate([batch[name] for batch in found])[:rows]
        for name in found[0]
    }


def _inputs(
    examples: Sequence[bytes], columns: Sequence[Column]
) -> dict[str, dict[str, np.ndarray]]:
    """Returns the inputs of both signatures."""
    raw = tf.io.parse_example(
        tf.constant(list(examples), tf.string), requests.raw_spec(columns)
    )
    return {
        saved_model.SERVING_DEFAULT: {receivers.EXAMPLES: np.array(examples, object)},
        saved_model.PREDICT: {name: value.numpy() for name, value in raw.items()},
    }


class _Comparison:
    """Writes what the child process has to compare, part by part."""

    def __init__(
        self,
        directory: str,
        columns: Sequence[Column],
        forwarded: Sequence[Column],
    ):
        self._writer = _CaseWriter(directory)
        self._columns = list({c.name: c for c in (*columns, *forwarded)}.values())
        self._forwarded = forwarded
        self.parts: list[dict] = []

    def add(self, examples: Sequence[bytes], expected: dict[str, np.ndarray]) -> None:
        if self._forwarded:
            repeated = parsing.parse(
                tf.constant(list(examples), tf.string), self._forwarded
            )
            expected = expected | {n: v.numpy() for n, v in repeated.items()}
        inputs = _inputs(examples, self._columns)
        self.parts.append(
            {
                "rows": len(examples),
                "expected": self._writer.arrays(expected),
                "inputs": {n: self._writer.arrays(v) for n, v in inputs.items()},
            }
        )


def _predict(
    trained: estimator.Estimator,
    checkpoint: str,
    part: records.Records,
    declaration: Declaration,
    directory: str,
    sizes: Sequence[int],
    made: Sequence[bytes],
) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """Returns what Estimator.predict says of rows that were made, and of each part."""
    of_made = records.eval_input_fn(
        _write_probes(directory, made), declaration, len(made)
    )
    of_split = records.eval_input_fn(part, declaration, _BATCH)
    predictions = trained.predict(
        # One session answers for both.
        lambda: of_made().concatenate(of_split()),
        checkpoint_path=checkpoint,
        yield_single_examples=False,
    )
    with contextlib.closing(predictions):
        return (
            _expected(predictions, 1, len(made)),
            [_expected(predictions, _PART_BATCHES, n) for n in sizes],
        )


def _write_probes(directory: str, rows: Sequence[bytes]) -> records.Records:
    path = os.path.join(directory, "probes.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(row)
    return records.Records((path,), len(rows))


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
    forwarded: Sequence[Column] = (),
) -> Verification:
    """Compares a SavedModel, loaded in a fresh process, with `Estimator.predict`.

    The signatures that take serialized Examples and raw tensors are both compared,
    on real rows and on rows made from one, with missing and unknown values; in batches
    of several sizes; in the loader of TensorFlow 1. Requests with a value of a wrong
    type, or without a required one, must fail, those of tf.Examples with an error that
    names the feature.
    Where two classes are equally probable, either may be the predicted one.

    Args:
      model_dir: The SavedModel.
      trained: The Estimator it was exported from.
      checkpoint: The checkpoint it was exported from.
      part: Records to compare on.
      declaration: Of the records.
      rows: How many rows to compare at most; 0 means all.
      forwarded: Columns that answers repeat.

    Raises:
      UserError: They differ, or the model does not load (exit code VERIFY_FAILED).
    """
    rows = min(rows or part.rows, part.rows)
    columns = declaration.input_columns
    everything = tuple(declaration.columns.values())
    first = next(records.serialized_rows(part, everything))
    made = probes.rows(first, declaration)
    sizes = _part_sizes(rows)
    with tempfile.TemporaryDirectory() as case_dir:
        predict = functools.partial(
            _predict, trained, checkpoint, part, declaration, case_dir, sizes
        )
        try:
            of_probes, expected = predict(made)
        except tf.errors.InvalidArgumentError:
            # A model of the user's own may refuse a text, e.g. one that is no number.
            made = made[:1]
            of_probes, expected = predict(made)
        comparison = _Comparison(case_dir, columns, forwarded)
        serialized = records.serialized_rows(part, everything)
        for size, wanted in zip(sizes, expected, strict=True):
            comparison.add(list(itertools.islice(serialized, size)), wanted)
        comparison.add(made, of_probes)
        case = {
            "batch": _BATCH,
            "tolerance": TOLERANCE,
            "parts": comparison.parts,
            "batches": BATCHES,
            "refused": list(probes.refused(first, columns)),
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
