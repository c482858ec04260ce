"""The predict command: raw files through an exported version into JSON lines."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export.versions import DECLARATION_FILE
from pipeline import declaration as declarations
from pipeline import environment, inputs
from pipeline.console import Console, Progress
from pipeline.preprocess import example_encoder, typed
from pipeline.preprocess import rejects as rejects_text
from pipeline.preprocess.sources.base import WHOLE, Loss, Source
from pipeline.types import Column, Declaration


@dataclasses.dataclass(frozen=True)
class PredictResult:
    """What predict did.

    Attributes:
      output: File of predictions, one JSON object a row, in the order of the input.
      rows: Rows predicted.
      rejects: File of the rows that could not be read; None where there were none.
      rejected: Their number.
      version: Directory of the SavedModel used.
      losses: Damaged files whose rest was left out.
    """

    output: str
    rows: int
    rejects: str | None
    rejected: int
    version: str
    losses: tuple[Loss, ...] = ()


def _plain(value: Any) -> Any:
    return (
        value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    )


def _answers(outputs: Mapping[str, Any], declaration: Declaration) -> Iterator[dict]:
    """Yields each row's prediction in the terms of the user's label."""
    if "probabilities" not in outputs:
        for value in outputs["predictions"].numpy():
            yield {"prediction": float(value[0])}
        return
    classes = declaration.label.classes
    predicted = outputs["classes"].numpy()
    for row, probabilities in zip(
        predicted, outputs["probabilities"].numpy(), strict=True
    ):
        yield {
            "class": _plain(row[0]),
            "probabilities": dict(zip(classes, map(float, probabilities), strict=True)),
        }


@contextlib.contextmanager
def _written_aside(path: str) -> Iterator[Any]:
    aside = f"{path}.tmp-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as f:
            yield f
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)
        raise


def run(
    sources: Sequence[Source],
    version_dir: str,
    output: str,
    console: Console,
) -> PredictResult:
    """Predicts every row of raw files.

    Rows are checked as preprocess checks them; the label may be absent. Rows that
    cannot be read go to OUTPUT.rejects.jsonl with file, line and reason.
    """
    declaration = declarations.load(os.path.join(version_dir, DECLARATION_FILE))
    columns: tuple[Column, ...] = declaration.input_columns
    inputs.check_columns(sources, columns, version_dir)
    console.progress(f"predict: loading {version_dir}")
    environment.load_tensorflow(console.verbosity)
    from pipeline.compat import tf

    serve = tf.saved_model.load(version_dir).signatures["serving_default"]
    rejects_path = f"{output}.rejects.jsonl"
    rows = rejected = 0
    losses: list[Loss] = []
    progress = Progress(console, "predict", "rows")
    with _written_aside(output) as out, _written_aside(rejects_path) as bad:
        for source in sources:
            for raw in source.read(WHOLE, [c.name for c in columns], columns):
                if raw.loss is not None:
                    losses.append(raw.loss)
                batch, rejects = typed.convert(raw, columns, None)
                for reject in (*raw.rejects, *rejects):
                    bad.write(rejects_text.to_json(reject) + "\n")
                    rejected += 1
                serialized = example_encoder.encode(batch.table)
                if not serialized:
                    continue
                outputs = serve(examples=tf.constant(serialized))
                for line, answer in zip(
                    batch.lines, _answers(outputs, declaration), strict=True
                ):
                    place = {"file": raw.path, "line": int(line)}
                    out.write(json.dumps({**place, **answer}) + "\n")
                rows += len(serialized)
                progress.update(rows)
    progress.close()
    if not rejected:
        os.remove(rejects_path)
    return PredictResult(
        output,
        rows,
        rejects_path if rejected else None,
        rejected,
        version_dir,
        tuple(losses),
    )
