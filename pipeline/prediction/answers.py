"""What a model answers, in the terms of the user's label or labels, as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.types import Declaration, Label, Labels, UserError

Path = tuple[str, ...]
"""Where a value stands in the JSON object of a row; with dots, a column's name."""

Columns = Mapping[Path, pa.Array]
"""A value a row, or a list of them; null where a number is not finite."""

FILE: Path = ("file",)
LINE: Path = ("line",)
_NARROW_FLOATS = ("float16", "bfloat16")


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """Predictions of consecutive rows of a file.

    Attributes:
      path: File.
      lines: int64, the physical line of each row, or its number in a file without
        lines (both from 1).
      columns: What stands beside them.
    """

    path: str
    lines: np.ndarray
    columns: Columns

    @property
    def names(self) -> list[str]:
        return [".".join(path) for path in (FILE, LINE, *self.columns)]

    def slice(self, start: int, stop: int) -> Answers:
        columns = {p: v.slice(start, stop - start) for p, v in self.columns.items()}
        return Answers(self.path, self.lines[start:stop], columns)

    def table(self) -> pa.RecordBatch:
        """Returns a column for each path; bytes of a file's name as backslashes."""
        path = self.path.encode(errors="backslashreplace").decode()
        files = pa.array([path], pa.string()).take(pa.array(np.zeros_like(self.lines)))
        lines = pa.array(self.lines, pa.int64())
        return pa.record_batch([files, lines, *self.columns.values()], self.names)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields each row as the JSON object that stands for it."""
        values = [column.to_pylist() for column in self.columns.values()]
        for line, *row in zip(self.lines.tolist(), *values, strict=True):
            found: dict[str, Any] = {FILE[0]: self.path, LINE[0]: line}
            for path, value in zip(self.columns, row, strict=True):
                place = found
                for name in path[:-1]:
                    place = place.setdefault(name, {})
                place[path[-1]] = value
            yield found


def _text(value: Any) -> str:
    return (
        value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    )


def array(values: np.ndarray) -> pa.Array:
    """Returns values [batch, ...] as an array of values or (nested) lists."""
    flat = values.reshape(-1)
    if values.dtype.name in _NARROW_FLOATS:
        flat = flat.astype(np.float32)
    if values.dtype == object:
        found = pa.array(map(_text, flat), pa.string())
    elif np.issubdtype(flat.dtype, np.floating):
        found = pa.array(flat, mask=~np.isfinite(flat))
    else:
        found = pa.array(flat)
    for axis in range(values.ndim - 1, 0, -1):
        lists = int(np.prod(values.shape[:axis]))
        offsets = np.arange(lists + 1, dtype=np.int32) * values.shape[axis]
        found = pa.ListArray.from_arrays(pa.array(offsets), found)
    return found


def of_outputs(outputs: Mapping[str, np.ndarray], declaration: Declaration) -> Columns:
    """Returns the predictions of a batch.

    Args:
      outputs: What the signature answers; of a model that does not answer as a head of
        the label does, each output stands under its name.
    """
    values = dict(sorted(outputs.items()))
    label = declaration.label
    if isinstance(label, Labels):
        if all(_is_of_head(values, f"{n}/", one) for n, one in label.of.items()):
            return {
                (name, *path): value
                for name, one in label.of.items()
                for path, value in _of_label(values, f"{name}/", one).items()
            }
    elif label and _is_of_head(values, "", label):
        return _of_label(values, "", label)
    for name in values:
        if (name,) in (FILE, LINE):
            raise UserError(
                f"the model has an output {name}, where predict writes the row's place;"
                " give it another name"
            )
    return {(name,): array(value) for name, value in values.items()}


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


def _of_label(values: Mapping[str, np.ndarray], prefix: str, label: Label) -> Columns:
    """Returns the prediction of a label in its own terms."""
    if label.classes is None:
        return {("prediction",): array(values[f"{prefix}predictions"][:, 0])}
    probabilities = values[f"{prefix}probabilities"]
    found: dict[Path, pa.Array] = {}
    if label.separator is None:
        found["class",] = array(values[f"{prefix}classes"][:, 0])
    else:
        names = np.array(label.classes, object)
        likely = [names[row].tolist() for row in probabilities > 0.5]
        found["classes",] = pa.array(likely, pa.list_(pa.string()))
    for i, name in enumerate(label.classes):
        found["probabilities", name] = array(probabilities[:, i])
    return found
