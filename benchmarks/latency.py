"""The part of `make bench` that answers: one row and 1,000 rows through an export.

A model of the Census example is trained for a few steps and exported with all formats.
Beside it stands a SavedModel written by hand with Keras' own preprocessing layers: the
same columns, vocabularies and layer sizes (with other weights, which cost the same).
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks import measure

_INPUT = os.path.join(measure.ROOT, "examples", "census", "adult.csv.gz")
_NUMBERS = ("age", "educational-num", "hours-per-week")
_TEXTS = ("workclass", "education", "marital-status", "occupation", "relationship")
_UNITS = (128, 64)
_FORMATS = ("litert", "litert_int8", "onnx")


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


def _keras_by_hand(directory: str, vocabularies) -> None:
    """Writes a SavedModel as one does without this project."""
    from pipeline.compat import tf, tf_keras

    layers = tf_keras.layers
    inputs = {n: tf_keras.Input([1], name=n, dtype=tf.int64) for n in _NUMBERS}
    inputs |= {n: tf_keras.Input([1], name=n, dtype=tf.string) for n in _TEXTS}
    parts = [
        layers.Normalization(mean=40.0, variance=100.0)(
            tf.cast(inputs[name], tf.float32)
        )
        for name in _NUMBERS
    ]
    wide = []
    for name in _TEXTS:
        terms = [term.decode() for term in vocabularies[name]]
        ids = layers.StringLookup(vocabulary=terms)(inputs[name])
        parts.append(layers.Flatten()(layers.Embedding(len(terms) + 1, 8)(ids)))
        wide.append(layers.Flatten()(layers.Embedding(len(terms) + 1, 1)(ids)))
    hidden = layers.Concatenate()(parts)
    for width in _UNITS:
        hidden = layers.Dense(width, use_bias=False)(hidden)
        hidden = layers.BatchNormalization()(hidden)
        hidden = layers.Dropout(0.1)(tf.nn.relu(hidden))
    logits = layers.Add()([layers.Dense(1)(hidden), *wide])
    model = tf_keras.Model(inputs, tf.sigmoid(logits))
    tf.saved_model.save(model, directory)


def answers(arguments, path: str, directory: str) -> None:
    """One row and 1,000 rows through each way; prints medians in milliseconds."""
    del arguments, path
    _export(directory)
    from export import requests, versions
    from export.formats import compare
    from pipeline import files, model_dir
    from pipeline.compat import tf

    job = os.path.join(directory, "latency", "keras_wide_deep")
    version = versions.find(os.path.join(job, "export"), None)
    model = model_dir.open_model(os.path.join(job, "model"))
    by_hand = os.path.join(directory, "by-hand")
    _keras_by_hand(by_hand, model.constants.vocabularies)
    ours = tf.saved_model.load(version).signatures
    keras = tf.saved_model.load(by_hand).signatures["serving_default"]
    columns = model.declaration.input_columns
    samples = os.path.join(version, versions.EXTRA, "sample_requests")
    examples = list(
        tf.data.TFRecordDataset(
            os.path.join(samples, "examples.tfrecord")
        ).as_numpy_iterator()
    )
    raw = requests.raw_inputs(examples, columns)
    serialized = {"examples": tf.constant(examples).numpy()}

    def tensors(function, deeper: bool = False):
        def run(values):
            given = {
                n: tf.constant(v[:, None] if deeper else v) for n, v in values.items()
            }
            return {n: v.numpy() for n, v in function(**given).items()}

        return run

    found = {
        "Keras by hand, raw tensors": compare.latency_ms(tensors(keras, True), raw),
        "SavedModel, predict": compare.latency_ms(tensors(ours["predict"]), raw),
        "SavedModel, serving_default": compare.latency_ms(
            tensors(ours["serving_default"]), serialized
        ),
        "SavedModel, transform": compare.latency_ms(
            tensors(ours["transform"]), serialized
        ),
    }
    manifest = files.read_json(os.path.join(version, "manifest.json"))
    for name, of_format in manifest["results"]["formats"].items():
        for runtime, result in of_format["runtimes"].items():
            found[f"{name} in {runtime}, {of_format['bytes']:,} bytes"] = result[
                "latency_ms"
            ]
    print("\nAnswers, median of a call in ms: one row, 1,000 rows")
    for name, of_way in found.items():
        print(f"  {name:<40} {of_way['1']:>9.3f} {of_way['1000']:>9.3f}")
