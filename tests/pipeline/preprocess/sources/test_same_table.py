"""The same table gives the same rows, whatever format it stands in."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from helpers_formats import WRITERS, compressed
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.flags.data import DataFlags
from pipeline.preprocess import splits, typed
from pipeline.preprocess.sources import registry
from pipeline.preprocess.sources.base import WHOLE
from pipeline.types import Column, ColumnType, Label, Split

COLUMNS = (
    Column("i", ColumnType.INT, ("", "-1"), 7),
    Column("f", ColumnType.FLOAT, ("", "-9"), 0.5),
    Column("s", ColumnType.STRING, ("", "NA"), "other"),
    Column("y", ColumnType.INT),
)
LABEL = Label("y", ("0", "1"))
SPLIT = Split({"train": 0.6, "test": 0.4}, salt="x")

_INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
# As CSV writes it, which is its shortest text.
_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).map(
    lambda value: float(str(np.float32(value)))
)
_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\0"),
    max_size=8,
) | st.sampled_from(["NA", " NA ", '"', "a,b", "a\tb", "two\nlines"])
_ROWS = st.lists(
    st.tuples(
        st.none() | _INTS,
        st.none() | _FLOATS,
        st.none() | _TEXTS,
        st.integers(0, 2),
    ),
    max_size=20,
)


def flags(path, **changes):
    values = {
        "input": str(path),
        "features": None,
        "label": None,
        "max_reject_fraction": 0.01,
        "shard_mb": 64,
        "beam_options": (),
    }
    return DataFlags(**{**values, **changes})


def read(path, **changes):
    """Returns the checked rows, rejects as (number, column), and rows' splits."""
    (source,) = registry.open_inputs(flags(path, **changes))
    rows, rejects, numbers = [], [], []
    place = 0
    for raw in source.read(WHOLE, [c.name for c in COLUMNS], COLUMNS):
        batch, bad = typed.convert(raw, COLUMNS, LABEL)
        assert not raw.rejects
        places = {int(line): place + i for i, line in enumerate(raw.lines)}
        place += len(places)
        rows += batch.table.to_pylist()
        rejects += [(places[r.line], r.column) for r in bad]
        numbers += splits.assign(batch.table, SPLIT).tolist()
    return rows, rejects, numbers


def as_table(rows):
    kinds = {c.name: c.type for c in COLUMNS}
    return {n: (kinds[n], [r[i] for r in rows]) for i, n in enumerate(kinds)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@settings(max_examples=60, deadline=None)
@given(rows=_ROWS)
def test_rows_rejects_and_splits(folder, rows):
    table = as_table(rows)
    found = {}
    for name, write in WRITERS.items():
        path = write(folder / f"data.{name}", table)
        found[name] = read(path)
        if name != "parquet":
            assert read(compressed(path)) == found[name], name
    good, rejects, _ = found["csv"]
    assert len(good) + len(rejects) == len(rows)
    assert [place for place, _ in rejects] == [
        i for i, row in enumerate(rows) if row[3] == 2
    ]
    for name, result in found.items():
        assert result == found["csv"], name
    kept = [row for row in rows if row[3] != 2]
    for row, values in zip(kept, good, strict=True):
        assert values["i"] == (None if row[0] == -1 else row[0])
        assert row[1] in (None, -9) or math.isclose(
            values["f"], row[1], rel_tol=1e-7, abs_tol=1e-45
        )
        assert values["y"] == row[3]


@pytest.mark.parametrize("name", WRITERS)
def test_no_rows(folder, name):
    path = WRITERS[name](folder / f"empty.{name}", as_table([]))
    assert read(path) == ([], [], [])


def test_types_of_the_result(folder):
    for name, write in WRITERS.items():
        path = write(folder / f"types.{name}", as_table([(1, 0.5, "x", 1)]))
        (source,) = registry.open_inputs(flags(path))
        (raw,) = source.read(WHOLE, [c.name for c in COLUMNS], COLUMNS)
        batch, _ = typed.convert(raw, COLUMNS, LABEL)
        assert batch.table.schema.types == [
            pa.int64(),
            pa.float32(),
            pa.binary(),
            pa.int64(),
        ]
