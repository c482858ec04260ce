"""Begins a new model with the weights of another one.

TensorFlow's WarmStartSettings leave out moving statistics, need vocabulary files for
tables that grew, cannot map the rows of a first dense layer, and say little.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence

import numpy as np

from pipeline import damage, files
from pipeline.compat import estimator, tf
from pipeline.console import Console
from pipeline.model_dir import TrainedModel
from pipeline.types import UserError
from pipeline.warm_start_plan import WarmStart
from pipeline.warm_start_rows import FRESH, Correspondence

REPORT_FILE = "warm_start.json"
# FTRL computes each weight anew from its sums; without them the first step would undo
# the weights that were taken over.
_WEIGHTS = re.compile(r"^(?!training/)|^training/Ftrl/.+/(?:linear|accumulator)$")


@dataclasses.dataclass(frozen=True)
class _Part:
    """A variable that is taken over.

    Attributes:
      name: Its name here.
      source: Its name there.
      rows: For each row here the row there, or FRESH; empty for a scalar.
    """

    name: str
    source: str
    rows: np.ndarray

    @property
    def fresh_rows(self) -> int:
        return int(np.sum(self.rows == FRESH))

    def merge(self, fresh: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Returns the variable's value, given its first value and the one there."""
        if not fresh.shape:
            return there
        known = self.rows != FRESH
        value = fresh.copy()
        value[known] = there[self.rows[known]]
        return value


@dataclasses.dataclass(frozen=True)
class _Division:
    """What becomes of each variable: taken over, or fresh for a reason."""

    taken: Sequence[_Part]
    fresh: Mapping[str, str]


def _source_name(name: str, renamed: Sequence[tuple[str, str]]) -> str:
    for old, new in sorted(renamed, key=lambda pair: -len(pair[1])):
        if name == new or name.startswith(new.rstrip("/") + "/"):
            return old.rstrip("/") + name[len(new.rstrip("/")) :]
    return name


def _divide(
    shapes: Mapping[str, Sequence[int]],
    there: Mapping[str, Sequence[int]],
    model: TrainedModel,
    source: WarmStart,
) -> _Division:
    """Decides for each variable.

    Args:
      shapes: Those of the variables here, by name.
      there: Those of the source.
    """
    wanted = _WEIGHTS if source.variables is None else re.compile(source.variables)
    rows_of = None
    if source.model is not None:
        rows_of = Correspondence(source.model, model)
    taken, fresh = [], {}
    for name, shape in sorted(shapes.items()):
        if name == "global_step":
            continue
        old = _source_name(name, source.renamed)
        if not wanted.search(name):
            fresh[name] = "not asked for"
        elif old not in there:
            fresh[name] = f"no {old} there"
        else:
            rows = None
            if rows_of is not None:
                rows = rows_of.rows(name, list(there[old]), list(shape))
            elif list(there[old]) == list(shape):
                rows = np.arange(shape[0] if shape else 0)
            if rows is None:
                fresh[name] = f"shape {list(there[old])} there, {list(shape)} here"
            elif shape and (rows == FRESH).all():
                fresh[name] = "none of its rows means the same there"
            else:
                taken.append(_Part(name, old, rows))
    return _Division(taken, fresh)


def _lines(division: _Division, source: WarmStart, unused: Sequence[str]) -> list[str]:
    whole = [part.name for part in division.taken if not part.fresh_rows]
    lines = [f"warm start from {source.path}; steps begin at 0"]
    if whole:
        lines.append(f"taken over: {', '.join(whole)}")
    for part in division.taken:
        if part.fresh_rows:
            lines.append(
                f"taken over in part: {part.name}, {len(part.rows) - part.fresh_rows}"
                f" rows; {part.fresh_rows} fresh"
            )
    by_reason: dict[str, list[str]] = {}
    for name, reason in division.fresh.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        lines.append(f"fresh ({reason}): {', '.join(names)}")
    if unused:
        lines.append(f"left there: {', '.join(unused)}")
    return lines


def _initialise(
    session, model: TrainedModel, source: WarmStart, console: Console
) -> None:
    """Gives the session's variables, which are initialised, the weights of the source."""
    damage.check_checkpoint(source.path)
    reader = tf.train.load_checkpoint(source.path)
    there = reader.get_variable_to_shape_map()
    ours = {v.op.name: v for v in tf.compat.v1.global_variables()}
    shapes = {name: v.shape.as_list() for name, v in ours.items()}
    division = _divide(shapes, there, model, source)
    if not division.taken:
        raise UserError(
            f"--warm_start_from: nothing in {source.path} fits; there are"
            f" {', '.join(sorted(there)[:20])}"
        )
    for part in division.taken:
        variable = ours[part.name]
        value = part.merge(session.run(variable), reader.get_tensor(part.source))
        # The graph is final: the value goes in where the first value would.
        session.run(variable.initializer, {variable.initializer.inputs[1]: value})
    used = {part.source for part in division.taken}
    lines = _lines(division, source, sorted(there.keys() - used - {"global_step"}))
    for line in lines:
        console.progress(f"train: {line}")
    report = {
        "checkpoint": source.path,
        "taken": {
            part.name: {"from": part.source, "fresh_rows": part.fresh_rows}
            for part in division.taken
        },
        "fresh": dict(division.fresh),
    }
    files.write_json(os.path.join(model.directory, REPORT_FILE), report)


def warm_started(
    trained: estimator.Estimator,
    model: TrainedModel,
    source: WarmStart,
    console: Console,
) -> estimator.Estimator:
    """Returns an Estimator that begins with the weights of `source`.

    Only variables that no checkpoint gave a value are touched: a training that goes on,
    or is called twice, does not begin anew. The first checkpoint, at step 0, holds the
    weights that were taken over.
    """

    def model_fn(features, labels, mode, config):
        spec = trained.model_fn(features, labels, mode, config)
        if mode != estimator.ModeKeys.TRAIN:
            return spec
        before = spec.scaffold.init_fn

        def init_fn(scaffold, session):
            del scaffold
            if before is not None:
                before(session)
            _initialise(session, model, source, console)

        scaffold = tf.compat.v1.train.Scaffold(
            init_fn=init_fn, copy_from_scaffold=spec.scaffold
        )
        return spec._replace(scaffold=scaffold)

    return estimator.Estimator(model_fn, config=trained.config)
