"""The model card of an exported version: what it is, from what, how good.

After "Model Cards for Model Reporting" (Mitchell et al. 2019), as far as a pipeline
can know it: data, model, training, metrics, versions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from pipeline import declaration as declarations
from pipeline import manifest as manifests
from pipeline.dataset import Dataset
from pipeline.model_dir import TrainedModel
from pipeline.types import UserError

JSON_FILE = "model_card.json"
MARKDOWN_FILE = "model_card.md"
FLAGS_FILE = "flags.txt"


def _metrics(evaluation_dir: str | None, checkpoint_digest: str) -> dict | None:
    """Returns what evaluate said of this very checkpoint, or None."""
    if evaluation_dir is None or not os.path.isdir(evaluation_dir):
        return None
    try:
        manifest = manifests.read(evaluation_dir)
    except UserError:
        return None
    if manifest is None or manifest.inputs.get("checkpoint") != checkpoint_digest:
        return None
    return {
        "split": manifest.configuration["split"],
        "rows": manifest.results["rows"],
        "values": manifest.results["metrics"],
    }


def _data(dataset: Dataset) -> dict[str, Any]:
    manifest = dataset.manifest
    return {
        "dataset": manifest.fingerprint,
        "files": [
            {**file, "path": os.path.basename(file["path"])}
            for file in manifest.inputs.get("files", ())
        ],
        "made": manifest.finished,
        "rows": dict(manifest.results["rows_written"]),
        "rows_rejected": manifest.results["rows_rejected"],
        "missing_values": dict(manifest.results["missing_values"]),
    }


def make(
    model: TrainedModel,
    dataset: Dataset,
    checkpoint_digest: str,
    global_step: int,
    signatures: tuple[str, ...],
    evaluation_dir: str | None,
) -> dict[str, Any]:
    """Returns the card as plain values.

    Args:
      dataset: What the version is verified on, usually what it was trained on.
      checkpoint_digest: As evaluate's manifest has it; its metrics are on the card
        where they are of this checkpoint.
      evaluation_dir: Where evaluate wrote.
    """
    training = model.training.as_json()
    return {
        "model": training.pop("model"),
        "global_step": global_step,
        "checkpoint": checkpoint_digest,
        "inputs": [
            {
                "column": column.name,
                "type": column.type.value,
                "default": None if column.required else column.default,
                "required": column.required,
            }
            for column in model.declaration.input_columns
        ],
        "declaration": declarations.dump(model.declaration),
        "signatures": list(signatures),
        "training": training,
        "data": _data(dataset),
        "metrics": _metrics(evaluation_dir, checkpoint_digest),
        "versions": manifests.versions(),
    }


def _table(head: tuple[str, ...], rows) -> list[str]:
    def line(cells) -> str:
        # A bar or a line feed would end the cell.
        texts = [str(c).replace("|", "\\|").replace("\n", " ") for c in cells]
        return f"| {' | '.join(texts)} |"

    return [line(head), f"|{'---|' * len(head)}", *map(line, rows), ""]


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return _table(
        ("name", "value"),
        [
            (n, json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v)
            for n, v in values.items()
        ],
    )


def to_markdown(card: Mapping[str, Any]) -> str:
    """Returns the card as a page for people."""
    data, metrics = card["data"], card["metrics"]
    lines = [f"# {card['model']}, step {card['global_step']:,}", ""]
    lines += ["## Metrics", ""]
    if metrics:
        lines += [f"{metrics['rows']:,} rows of the {metrics['split']} split.", ""]
        lines += _pairs(metrics["values"])
    else:
        lines += ["`evaluate` had not seen this checkpoint when it was exported.", ""]
    lines += ["## Data", "", f"Made {data['made']}.", ""]
    lines += _table(("split", "rows"), data["rows"].items())
    lines += _table(
        ("file", "bytes", "SHA-256"),
        [(f["path"], f["bytes"], f["sha256"]) for f in data["files"]],
    )
    if data["missing_values"]:
        lines += _table(("column", "missing values"), data["missing_values"].items())
    lines += ["## Request", "", f"Signatures: {', '.join(card['signatures'])}.", ""]
    lines += _table(
        ("column", "type", "without a value"),
        [
            (
                i["column"],
                i["type"],
                "an error" if i["required"] else f"counts as {i['default']!r}",
            )
            for i in card["inputs"]
        ],
    )
    lines += ["## Training", "", *_pairs(card["training"])]
    lines += ["## Versions", "", *_pairs(card["versions"])]
    return "\n".join(lines)
