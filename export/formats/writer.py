"""Writes a model in other formats, and proves each equal to the SavedModel.

The files stand in `assets.extra`, which servers of SavedModels ignore:
`formats.json` says what the inputs are.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from export import requests, saved_model
from export.formats import compare, litert, onnx_format
from export.formats.network import Network, check_features, extract
from input_fns import records
from pipeline.compat import estimator, tf
from pipeline.types import Declaration, ExitCode, UserError

INPUTS_FILE = "formats.json"
_REPRESENTATIVE_ROWS = 500


@dataclasses.dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
      file: Its name in `assets.extra`.
      extra: The extra of setup.py that brings its packages.
      modules: What must be importable.
      convert: From the network and real rows to the file's content.
      runtimes: Name of a runtime to what makes a runner of it. The first must be there.
      tolerance: How far its answers may be from the SavedModel's, as
        `compare.Difference.largest`.
      mean_tolerance: The same for `mean`; what int8 rounds off is much for a few rows.
    """

    file: str
    extra: str
    modules: tuple[str, ...]
    convert: Callable[[Network, compare.Rows], bytes]
    runtimes: dict[str, tuple[str, Callable[[bytes, Network], compare.Run]]]
    tolerance: float
    mean_tolerance: float


_LITERT = {"litert": ("ai_edge_litert", litert.Runner)}
FORMATS = {
    "litert": Format(
        "model.tflite",
        "litert",
        ("ai_edge_litert",),
        lambda network, rows: litert.convert(network, None),
        _LITERT,
        1e-5,
        1e-5,
    ),
    "litert_int8": Format(
        "model_int8.tflite",
        "litert",
        ("ai_edge_litert",),
        litert.convert,
        _LITERT,
        0.5,
        0.05,
    ),
    "onnx": Format(
        "model.onnx",
        "onnx",
        ("tf2onnx", "onnxruntime"),
        lambda network, rows: onnx_format.convert(network),
        {
            "onnxruntime": ("onnxruntime", onnx_format.OnnxRuntime),
            "openvino": ("openvino", onnx_format.OpenVino),
        },
        1e-5,
        1e-5,
    ),
}


def check(names: Sequence[str], declaration: Declaration) -> None:
    """Checks what can be checked of formats before a model is built.

    Raises:
      UserError: A package is not installed, and the message says how to get it; or
        a feature is of a kind that no format takes.
    """
    for name in names:
        for module in FORMATS[name].modules:
            if importlib.util.find_spec(module) is None:
                raise UserError(
                    f"--formats={name} needs the package {module}, which is not"
                    f" installed: pip install 'estimator-pipeline[{FORMATS[name].extra}]'"
                )
    if names:
        check_features(declaration)


def _describe_inputs(network: Network) -> list[dict[str, Any]]:
    return [
        {
            "input": spec.name,
            "feature": feature,
            "type": spec.dtype.name,
            "shape": ["batch", *spec.shape[1:]],
        }
        for feature, spec in network.specs.items()
    ]


def _judge(name: str, runtime: str, found: compare.Difference) -> None:
    of = FORMATS[name]
    if found.largest <= of.tolerance and found.mean <= of.mean_tolerance:
        return
    raise UserError(
        f"verify: output {found.output} of format {name} in {runtime} differs from the"
        f" SavedModel by {found.largest:.3g} (mean {found.mean:.3g}); at most"
        f" {of.tolerance:g} (mean {of.mean_tolerance:g}) is allowed",
        ExitCode.VERIFY_FAILED,
    )


def _answers(version_dir: str, rows: Sequence[bytes]) -> tuple[compare.Rows, ...]:
    """Returns features and answers of the SavedModel."""
    signatures = tf.saved_model.load(version_dir).signatures
    examples = tf.constant(list(rows), tf.string)
    return tuple(
        {n: v.numpy() for n, v in signatures[name](examples=examples).items()}
        for name in (saved_model.TRANSFORM, saved_model.SERVING_DEFAULT)
    )


def write(
    names: Sequence[str],
    version_dir: str,
    extra: str,
    trained: estimator.Estimator,
    checkpoint: str,
    part: records.Records,
    declaration: Declaration,
    rows: int,
) -> dict[str, dict[str, Any]]:
    """Writes formats of a model whose SavedModel is verified.

    Args:
      names: In `FORMATS`.
      version_dir: The SavedModel.
      extra: Directory for the files.
      part: Records whose rows are compared, and from whose ranges int8 is made.
      rows: How many to compare at most; 0 means all.

    Returns:
      By format: `file`, `bytes`, `rows`, `inputs`, `tolerance`, and by runtime the
      `largest_difference`, `mean_difference` and `latency_ms` (median of a call with
      "1" and with "1000" rows).

    Raises:
      UserError: The model cannot be converted, or a format differs (VERIFY_FAILED).
    """
    network = extract(trained, checkpoint, declaration)
    count = min(rows or part.rows, part.rows)
    examples = requests.first_rows(part, declaration.input_columns, count)
    features, answers = _answers(version_dir, examples)
    wanted = {name: answers[name] for name in network.outputs}
    representative = {
        n: v[: min(_REPRESENTATIVE_ROWS, count)] for n, v in features.items()
    }
    results = {}
    for name in names:
        of = FORMATS[name]
        content = of.convert(network, representative)
        runtimes = {}
        for runtime, (module, make) in of.runtimes.items():
            if importlib.util.find_spec(module) is None:
                continue
            run = make(content, network)
            found = compare.difference(run(features), wanted)
            for size in (1, 3):
                # Other sizes of a batch than the one before.
                few = compare.difference(
                    run(compare.take(features, size)), compare.take(wanted, size)
                )
                if not np.isfinite(few.largest):
                    found = few
            _judge(name, runtime, found)
            runtimes[runtime] = {
                "largest_difference": found.largest,
                "mean_difference": found.mean,
                "latency_ms": compare.latency_ms(run, features),
            }
        with open(os.path.join(extra, of.file), "wb") as f:
            f.write(content)
        results[name] = {
            "file": of.file,
            "bytes": len(content),
            "rows": count,
            "tolerance": of.tolerance,
            "mean_tolerance": of.mean_tolerance,
            "runtimes": runtimes,
        }
    described = {"inputs": _describe_inputs(network), "formats": results}
    with open(os.path.join(extra, INPUTS_FILE), "w", encoding="utf-8") as f:
        json.dump(described, f, indent=2)
    return results
