"""The predict command: raw files through an exported version into JSON lines."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export.versions import DECLARATION_FILE
from pipeline import declaration as declarations
from pipeline import environment, inputs
from pipeline import manifest as manifests
from pipeline.console import Console, Progress
from pipeline.preprocess import example_encoder, typed
from pipeline.preprocess import rejects as rejects_text
from pipeline.preprocess.sources.base import WHOLE, Loss, Source
from pipeline.types import Column, Declaration, Label, Labels, UserError

# Reading gives some 100,000 narrow rows at a time; one-hot features of so many
# would fill the memory.
_BATCH = 4096


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


def _number(value: float) -> float | None:
    """Returns a number as JSON knows it: nothing where it is not finite."""
    return float(value) if math.isfinite(value) else None


def _of_label(outputs: Mapping[str, Any], label: Label) -> Iterator[dict]:
    """Yields each row's prediction of a label, in its own terms."""
    if label.classes is None:
        for value in outputs["predictions"]:
            yield {"prediction": _number(value[0])}
        return
    for row, numbers in zip(outputs["classes"], outputs["probabilities"], strict=True):
        probabilities = dict(zip(label.classes, map(_number, numbers), strict=True))
        if label.separator is None:
            yield {"class": _plain(row[0]), "probabilities": probabilities}
        else:
            likely = [name for name, p in probabilities.items() if p and p > 0.5]
            yield {"classes": likely, "probabilities": probabilities}


def _of_several(outputs: Mapping[str, Any], labels: Labels) -> Iterator[dict]:
    by_label = [
        _of_label(
            {
                name.removeprefix(f"{of}/"): value
                for name, value in outputs.items()
                if name.startswith(f"{of}/")
            },
            label,
        )
        for of, label in labels.of.items()
    ]
    for answers in zip(*by_label, strict=True):
        yield dict(zip(labels.of, answers, strict=True))


def _nested(value: Any) -> Any:
    if isinstance(value, list):
        return [_nested(part) for part in value]
    return _number(value) if isinstance(value, float) else _plain(value)


def _by_output(outputs: Mapping[str, Any]) -> Iterator[dict]:
    """Yields each row's outputs by name, of a model that has its own."""
    for row in zip(*outputs.values(), strict=True):
        yield {n: _nested(v.tolist()) for n, v in zip(outputs, row, strict=True)}


def _answers(outputs: Mapping[str, Any], declaration: Declaration) -> Iterator[dict]:
    """Yields each row's prediction in the terms of the user's label or labels."""
    values = {name: value.numpy() for name, value in sorted(outputs.items())}
    label = declaration.label
    if isinstance(label, Labels):
        if all(_is_of_head(values, f"{n}/", one) for n, one in label.of.items()):
            return _of_several(values, label)
    elif label and _is_of_head(values, "", label):
        return _of_label(values, label)
    return _by_output(values)


def _is_of_head(values: Mapping[str, Any], prefix: str, label: Label) -> bool:
    """Whether the outputs are those that a head gives for the label."""
    if label.classes is None:
        wanted = {"predictions": 1}
    else:
        several = label.separator is not None
        count = len(label.classes)
        wanted = {"probabilities": count, "classes": count if several else 1}
    return all(
        prefix + name in values and values[prefix + name].shape[1:] == (width,)
        for name, width in wanted.items()
    )


def _forwarded(version_dir: str, declaration: Declaration) -> tuple[Column, ...]:
    """Returns the columns that the version's answers repeat, e.g. a key."""
    manifest = manifests.read(version_dir)
    names = manifest.configuration.get("forward_features", ()) if manifest else ()
    return tuple(declaration.columns[name] for name in names)


def _take_forwarded(
    outputs: dict[str, Any], forwarded: Sequence[Column]
) -> list[dict[str, Any]]:
    """Takes what answers repeat out of the outputs; returns it by row."""
    values = {c.name: outputs.pop(c.name).numpy().tolist() for c in forwarded}
    return [
        {"forwarded": {n: _json_value(v) for n, v in zip(values, row, strict=True)}}
        for row in zip(*values.values(), strict=True)
    ]


def _json_value(value: Any) -> Any:
    return _number(value) if isinstance(value, float) else _plain(value)


def _load(version_dir: str) -> Any:
    """Returns the signature that takes serialized Examples."""
    from pipeline.compat import tf

    try:
        return tf.saved_model.load(version_dir).signatures["serving_default"]
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"{version_dir} cannot be loaded ({error}); run export again, or take"
            " another --version"
        ) from error


def _check_output(output: str, input_files: Sequence[str]) -> None:
    for path in (output, _rejects_path(output)):
        if os.path.isdir(path):
            raise UserError(f"--output: {path} is a directory")
        for source in input_files:
            if os.path.exists(path) and os.path.samefile(path, source):
                raise UserError(
                    f"--output={output} would replace {source}, which is an --input"
                )


def _rejects_path(output: str) -> str:
    return f"{output}.rejects.jsonl"


@contextlib.contextmanager
def _written_aside(path: str) -> Iterator[Any]:
    aside = f"{path}.tmp-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8", errors="backslashreplace") as f:
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
    cannot be read go to OUTPUT.rejects.jsonl with file, line and reason. A number
    that is not finite stands as null.

    Raises:
      UserError: The version or a file cannot be read, a file lacks a column, or the
        output would replace an input.
    """
    _check_output(output, [source.path for source in sources])
    declaration = declarations.load(os.path.join(version_dir, DECLARATION_FILE))
    forwarded = _forwarded(version_dir, declaration)
    read = {column.name: column for column in (*declaration.input_columns, *forwarded)}
    columns: tuple[Column, ...] = tuple(read.values())
    inputs.check_columns(sources, columns, version_dir)
    console.progress(f"predict: loading {version_dir}")
    environment.load_tensorflow(console.verbosity)
    from pipeline.compat import tf

    serve = _load(version_dir)
    rejects_path = _rejects_path(output)
    rows = rejected = 0
    losses: list[Loss] = []
    progress = Progress(console, "predict", "rows")
    with _written_aside(output) as out, _written_aside(rejects_path) as bad:
        for raw in itertools.chain.from_iterable(
            source.read(WHOLE, [c.name for c in columns], columns) for source in sources
        ):
            if raw.loss is not None:
                losses.append(raw.loss)
            batch, rejects = typed.convert(raw, columns, None)
            in_order = sorted((*raw.rejects, *rejects), key=lambda r: r.line)
            bad.writelines(rejects_text.to_json(reject) + "\n" for reject in in_order)
            rejected += len(in_order)
            serialized = example_encoder.encode(batch.table)
            for start in range(0, len(serialized), _BATCH):
                part = slice(start, start + _BATCH)
                outputs = dict(serve(examples=tf.constant(serialized[part])))
                keys = _take_forwarded(outputs, forwarded)
                for i, (line, answer) in enumerate(
                    zip(batch.lines[part], _answers(outputs, declaration), strict=True)
                ):
                    place = {"file": raw.path, "line": int(line)}
                    row = {**place, **(keys[i] if keys else {}), **answer}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
                rows += len(serialized[part])
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
