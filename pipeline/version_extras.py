"""What stands beside a SavedModel in `assets.extra`, for people, clients and servers.

features.yaml                 the feature declaration
schema.pbtxt                  the dataset's schema
constants.json, vocabularies/ what preprocess computed for the model's graph
flags.txt                     the flags of the training
model_card.md, .json          data, training, metrics, versions
tf_serving_warmup_requests    requests that TensorFlow Serving begins with
sample_requests/              SIGNATURE.json (a REST call's body), examples.tfrecord
"""

from __future__ import annotations

import os
import shutil
import urllib.parse

from export import requests, signature_defs, versions, warmup
from pipeline import checkpoints, estimators, files, model_card
from pipeline.compat import tf
from pipeline.dataset import SCHEMA_FILE, Dataset
from pipeline.estimators import PinnedCheckpoint
from pipeline.preprocess import constants_files
from pipeline.types import Column

SAMPLES = "sample_requests"
EXAMPLES_FILE = "examples.tfrecord"
_ROWS = 8


def _copy_if_there(source: str, target: str) -> None:
    if os.path.exists(source):
        shutil.copyfile(source, target)


def _write_requests(
    extra: str,
    version_dir: str,
    model: str,
    examples: list[bytes],
    columns: tuple[Column, ...],
) -> tuple[str, ...]:
    kinds = {
        name: signature_defs.kind(signature)
        for name, signature in signature_defs.read(version_dir).items()
    }
    warmup.write(extra, warmup.logs(model, kinds, examples, columns))
    samples = os.path.join(extra, SAMPLES)
    os.makedirs(samples)
    for name, body in requests.rest_bodies(kinds, examples[:2], columns).items():
        # A signature of a model of several labels is LABEL/NAME.
        path = os.path.join(samples, f"{urllib.parse.quote(name, safe='')}.json")
        files.write_json(path, body)
    with tf.io.TFRecordWriter(os.path.join(samples, EXAMPLES_FILE)) as writer:
        for example in examples:
            writer.write(example)
    return tuple(kinds)


def write(
    version_dir: str,
    pinned: PinnedCheckpoint,
    dataset: Dataset,
    split: str,
    evaluation_dir: str | None = None,
    forwarded: tuple[Column, ...] = (),
) -> None:
    """Writes the files into a version whose SavedModel is there.

    Args:
      version_dir: The version; its `assets.extra` may hold other files.
      pinned: What it was made from.
      split: Where the sample rows are from.
      evaluation_dir: Where evaluate wrote metrics, for the model card.
      forwarded: Columns that answers repeat, so that requests hold them.
    """
    model = pinned.model
    extra = os.path.join(version_dir, versions.EXTRA)
    os.makedirs(extra, exist_ok=True)
    by_name = {c.name: c for c in (*model.declaration.input_columns, *forwarded)}
    columns = tuple(by_name.values())
    rows = requests.first_rows(
        estimators.to_records(dataset.shards(split)), columns, _ROWS
    )
    signatures = _write_requests(
        extra, version_dir, model.training.model, rows, columns
    )
    constants_files.write_constants(extra, model.constants)
    _copy_if_there(
        os.path.join(dataset.directory, SCHEMA_FILE), os.path.join(extra, SCHEMA_FILE)
    )
    flags = os.path.join(model.directory, model_card.FLAGS_FILE)
    _copy_if_there(flags, os.path.join(extra, model_card.FLAGS_FILE))
    card = model_card.make(
        model,
        dataset,
        checkpoints.digest(pinned.path),
        pinned.step,
        signatures,
        evaluation_dir,
    )
    files.write_json(os.path.join(extra, model_card.JSON_FILE), card)
    files.write_atomically(
        os.path.join(extra, model_card.MARKDOWN_FILE), model_card.to_markdown(card)
    )
