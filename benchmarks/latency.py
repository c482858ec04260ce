"""The part of `make bench` that answers: one row and 1,000 rows through an export.

A model of the Census example is trained for a few steps and exported with all formats.
Beside it stand SavedModels written by hand with Keras: the same columns, vocabularies
and layer sizes (with other weights, which cost the same). One takes raw columns through
Keras' own preprocessing layers, as ours does, which has rules for missing values besides;
the other begins behind the lookups, as the formats do.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import measure
from export.formats import compare

_INPUT = os.path.join(measure.ROOT, "examples", "census", "adult.csv.gz")
_NUMBERS = ("age", "educational-num", "hours-per-week")
_TEXTS = ("workclass", "education", "marital-status", "occupation", "relationship")
_UNITS = (128, 64)
_FORMATS = ("litert", "litert_int8", "onnx")

Ways = Mapping[str, tuple[compare.Run, compare.Rows]]
"""Name of a way to an answer; what runs it and what it is given."""


def _declaration() -> str:
    lines = ["label: {column: income, classes: ['<=50K', '>50K']}", "columns:"]
    lines += [f"  {name}: {{type: int}}" for name in _NUMBERS]
    lines += [
        f"  {name}: {{type: string, missing: ['?'], default: none}}" for name in _TEXTS
    ]
    lines += [
        "  income: {type: string}",
        "split: {fractions: {train: 0.7, eval: 0.1, test: 0.2}}",
    ]
    lines.append("features:")
    lines += [f"  {name}: {{kind: numeric}}" for name in _NUMBERS]
    lines += [f"  {name}: {{kind: vocabulary, embedding: 8}}" for name in _TEXTS]
    return "\n".join(lines) + "\n"


def _export(directory: str) -> None:
    features = os.path.join(directory, "latency.yaml")
    with open(features, "w", encoding="utf-8") as f:
        f.write(_declaration())
    command = [sys.executable, "-m", "pipeline", "run", f"--input={_INPUT}"]
    command += [f"--features={features}", f"--work_dir={directory}/latency"]
    command += ["--model=keras_wide_deep", "--max_steps=50", "--verify_rows=1000"]
    command += [f"--hparams=hidden_units={list(_UNITS)}"]
    subprocess.run(
        [*command, f"--formats={','.join(_FORMATS)}", "--verbosity=-1"],
        check=True,
        cwd=measure.ROOT,
        stdout=subprocess.DEVNULL,
    )


def _keras_by_hand(directory: str, behind: str, vocabularies) -> None:
    """Writes SavedModels as one does without this project.

    Args:
      directory: For the one that takes raw columns.
      behind: For the network alone, which takes ids and numbers as the formats do.
      vocabularies: Column to its terms.
    """
    from pipeline.compat import tf, tf_keras

    layers = tf_keras.layers
    encoded = {n: tf_keras.Input([1], name=n, dtype=tf.float32) for n in _NUMBERS}
    encoded |= {n: tf_keras.Input([1], name=n, dtype=tf.int64) for n in _TEXTS}
    parts = [encoded[name] for name in _NUMBERS]
    wide = []
    for name in _TEXTS:
        size = len(vocabularies[name]) + 1
        parts.append(layers.Flatten()(layers.Embedding(size, 8)(encoded[name])))
        wide.append(layers.Flatten()(layers.Embedding(size, 1)(encoded[name])))
    hidden = layers.Concatenate()(parts)
    for width in _UNITS:
        hidden = layers.Dense(width, use_bias=False)(hidden)
        hidden = layers.BatchNormalization()(hidden)
        hidden = layers.Dropout(0.1)(tf.nn.relu(hidden))
    logits = layers.Add()([layers.Dense(1)(hidden), *wide])
    network = tf_keras.Model(encoded, tf.sigmoid(logits))
    tf.saved_model.save(network, behind)

    raw = {n: tf_keras.Input([1], name=n, dtype=tf.int64) for n in _NUMBERS}
    raw |= {n: tf_keras.Input([1], name=n, dtype=tf.string) for n in _TEXTS}
    features = {
        name: layers.Normalization(mean=40.0, variance=100.0)(
            tf.cast(raw[name], tf.float32)
        )
        for name in _NUMBERS
    }
    for name in _TEXTS:
        terms = [term.decode() for term in vocabularies[name]]
        features[name] = layers.StringLookup(vocabulary=terms)(raw[name])
    tf.saved_model.save(tf_keras.Model(raw, network(features)), directory)


def _function(signature, deeper: Sequence[str] = ()) -> compare.Run:
    """Returns a signature as a function from arrays to arrays.

    Args:
      deeper: Inputs that are [batch, 1] and are given as [batch].
    """
    from pipeline.compat import tf

    def run(values):
        given = {
            n: tf.constant(v[:, None] if n in deeper else v) for n, v in values.items()
        }
        return {n: v.numpy() for n, v in signature(**given).items()}

    return run


def _formats(version: str, model, features: compare.Rows) -> Ways:
    """Returns each format that the version holds, in each runtime that is there."""
    from export import versions
    from export.formats import network, writer
    from pipeline import estimators

    trained = estimators.make_estimator(model)
    checkpoint, _ = estimators.latest_checkpoint(model)
    extracted = network.extract(trained, checkpoint, model.declaration)
    ways = {}
    for name in _FORMATS:
        of = writer.FORMATS[name]
        with open(os.path.join(version, versions.EXTRA, of.file), "rb") as f:
            content = f.read()
        for runtime, (module, make) in of.runtimes.items():
            if importlib.util.find_spec(module) is not None:
                told = f"{name} in {runtime}, {len(content):,} bytes"
                ways[told] = make(content, extracted), features
    return ways


def _signatures(version: str, by_hand: str, behind: str, model) -> Ways:
    """Returns the signatures of ours and of the models by hand."""
    from export import requests, versions
    from pipeline.compat import tf

    ours = tf.saved_model.load(version).signatures
    keras, network = (
        tf.saved_model.load(path).signatures["serving_default"]
        for path in (by_hand, behind)
    )
    samples = os.path.join(version, versions.EXTRA, "sample_requests")
    examples = list(
        tf.data.TFRecordDataset(
            os.path.join(samples, "examples.tfrecord")
        ).as_numpy_iterator()
    )
    raw = requests.raw_inputs(examples, model.declaration.input_columns)
    serialized = {"examples": tf.constant(examples).numpy()}
    transform = _function(ours["transform"])
    features = transform(serialized)
    return {
        "Keras by hand, raw columns": (_function(keras, list(raw)), raw),
        "SavedModel, predict": (_function(ours["predict"]), raw),
        "SavedModel, serving_default": (_function(ours["serving_default"]), serialized),
        "SavedModel, transform": (transform, serialized),
        "Keras by hand, network alone": (_function(network, _TEXTS), features),
    }


def answers(arguments, path: str, directory: str) -> None:
    """One row and 1,000 rows through each way; prints milliseconds a call."""
    del path
    _export(directory)
    from export import versions
    from pipeline import model_dir

    job = os.path.join(directory, "latency", "keras_wide_deep")
    version = versions.find(os.path.join(job, "export"), None)
    model = model_dir.open_model(os.path.join(job, "model"))
    by_hand, behind = (os.path.join(directory, n) for n in ("by-hand", "behind"))
    _keras_by_hand(by_hand, behind, model.constants.vocabularies)
    ways = _signatures(version, by_hand, behind, model)
    _, features = ways["Keras by hand, network alone"]
    ways |= _formats(version, model, features)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(arguments.runs):
        for name, (run, values) in ways.items():
            runs[name].append(compare.latency_ms(run, values))
    print(
        f"\nAnswers, ms a call, in {arguments.runs} runs by turns the median (lowest to"
        " highest) of a run's median\n" + f"  {'':<40}{'one row':>25}{'1,000 rows':>25}"
    )
    for name, found in runs.items():
        shown = "".join(
            f"{_summary([run[rows] for run in found]):>25}" for rows in ("1", "1000")
        )
        print(f"  {name:<40}{shown}")


def _summary(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})"
