"""TensorFlow Transform on the same rows: z-scores, buckets and vocabularies.

Runs where tensorflow-transform is installed, which need not be this environment.
It checks and rejects nothing and computes only what its own transformations need.

Arguments: OUTPUT PATH
"""

from __future__ import annotations

import csv
import os
import tempfile

from benchmarks import measure

_INTS = "year month day sched_dep_time sched_arr_time flight distance hour minute"
_FLOATS = "dep_time dep_delay arr_time arr_delay air_time"
_STRINGS = "carrier tailnum origin dest time_hour"


def _preprocess(inputs):
    import tensorflow as tf
    import tensorflow_transform as tft

    outputs = {}
    for name in _INTS.split() + _FLOATS.split():
        value = inputs[name]
        if isinstance(value, tf.SparseTensor):
            shape = tf.stack([tf.shape(value)[0], 1])
            value = tf.sparse.to_dense(tf.sparse.reset_shape(value, shape))
            value = tf.ensure_shape(value, [None, 1])
        value = tf.cast(value, tf.float32)
        outputs[name] = tft.scale_to_z_score(value)
    outputs["distance_bucket"] = tft.bucketize(inputs["distance"], 10)
    outputs["hour_bucket"] = tft.bucketize(inputs["hour"], 10)
    for name in _STRINGS.split():
        outputs[name] = tft.compute_and_apply_vocabulary(inputs[name])
    return outputs


def _parse(line: str, names: list[str]) -> dict:
    row = {}
    for name, text in zip(names, next(csv.reader([line])), strict=True):
        if name in _INTS.split():
            row[name] = int(text)
        elif name in _FLOATS.split():
            row[name] = [float(text)] if text else []
        else:
            row[name] = text
    return row


def _work(output: str, path: str, names: list[str]) -> int:
    import apache_beam as beam
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

    spec = {n: tf.io.FixedLenFeature([], tf.int64) for n in _INTS.split()}
    spec |= {n: tf.io.VarLenFeature(tf.float32) for n in _FLOATS.split()}
    spec |= {n: tf.io.FixedLenFeature([], tf.string) for n in _STRINGS.split()}
    metadata = dataset_metadata.DatasetMetadata(
        schema_utils.schema_from_feature_spec(spec)
    )
    os.mkdir(output)
    rows = 0

    def write(records):
        nonlocal rows
        with tf.io.TFRecordWriter(os.path.join(output, "all.tfrecord")) as writer:
            for record in records:
                writer.write(record)
                rows += 1

    with (
        beam.Pipeline(runner="FnApiRunner") as pipeline,
        tft_beam.Context(temp_dir=tempfile.mkdtemp()),
    ):
        raw = (
            pipeline
            | beam.io.ReadFromText(path, skip_header_lines=1)
            | beam.Map(_parse, names)
        )
        (transformed, new_metadata), _ = (
            raw,
            metadata,
        ) | tft_beam.AnalyzeAndTransformDataset(_preprocess)
        coder = tft.coders.ExampleProtoCoder(new_metadata.schema)
        _ = (
            transformed
            | beam.Map(coder.encode)
            | beam.combiners.ToList()
            | beam.Map(write)
        )
    return rows or sum(1 for _ in tf.data.TFRecordDataset(f"{output}/all.tfrecord"))


def main(output: str, path: str) -> None:
    import gzip

    with measure.stopwatch() as elapsed:
        import tensorflow_transform.beam  # noqa: F401

        import_seconds = elapsed()
    with gzip.open(path, "rt") as f:
        names = f.readline().strip().split(",")
    with measure.stopwatch() as elapsed:
        rows = _work(output, path, names)
        seconds = elapsed()
    measure.report(rows, seconds, import_seconds, measure.size_of(output))
