"""The accumulators of a dataset's statistics as a file: exact, and readable elsewhere.

`accumulators.arrow` is an Arrow IPC file. Its metadata has `format`, `version`,
`point_limit` and `value_limit` (see `ColumnStatistics`); each row is one column of
one split, sorted by split, in declared order, followed by what is made of them:

    split, column, type               text; type as in the feature declaration
    derivation                        what is made of the column, see `derived`; else
                                      null
    id_buckets                        for a column of ids; else null
    are_dates                         whether it is a column of dates
    count, missing, non_finite, zeros, outside, text_bytes
    total, squares, log_total, log_squares
                                      whole numbers as decimal text: the sums of the
                                      finite numbers x, of x**2, and of the same for
                                      sign(x) log(1 + |x|), in units of 2**-1126
    level, lows, highs, cell_counts   the cells of `value_points`
    values, value_counts, undercount, truncated, most_held
                                      see `value_counts`; null where not counted

Nothing is rounded, so that statistics merged from files are those of one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline import files
from pipeline.preprocess.column_statistics import ColumnStatistics
from pipeline.preprocess.derived import Derivation
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import ColumnType, ExitCode, UserError

_FORMAT = "estimator-pipeline accumulators"
_VERSION = "2"
_COUNTERS = ("count", "missing", "non_finite", "zeros", "outside", "text_bytes")
_HEAD = ["split", "column", "type", "derivation", "id_buckets", "are_dates"]
_SUMS = ("total", "squares", "log_total", "log_squares")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("split", "column", "type")),
        ("derivation", pa.string()),
        ("id_buckets", pa.int64()),
        ("are_dates", pa.bool_()),
        *((name, pa.int64()) for name in _COUNTERS),
        *((name, pa.string()) for name in _SUMS),
        ("level", pa.int64()),
        ("lows", pa.large_list(pa.float64())),
        ("highs", pa.large_list(pa.float64())),
        ("cell_counts", pa.large_list(pa.int64())),
        ("values", pa.large_list(pa.large_binary())),
        ("value_counts", pa.large_list(pa.int64())),
        ("undercount", pa.int64()),
        ("truncated", pa.bool_()),
        ("most_held", pa.int64()),
    ]
)


def write(path: str, statistics: DatasetStatistics) -> None:
    """Writes the accumulators; the same statistics give the same bytes."""
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        **{name: str(limit) for name, limit in statistics.limits.items()},
    }
    schema = _SCHEMA.with_metadata(metadata)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for split in sorted(statistics):
            for name, column in statistics[split].items():
                row = _head(split, name, None, column)
                writer.write(_to_batch({**row, **column.state()}, schema))
            for derivation, column in statistics.derived(split).items():
                row = _head(split, derivation.column, derivation.to_text(), column)
                writer.write(_to_batch({**row, **column.state()}, schema))
    files.write_atomically(path, sink.getvalue().to_pybytes())


def read(path: str) -> DatasetStatistics:
    """Reads what `write` has written.

    Raises:
      UserError: The file is missing, damaged or of another version.
    """
    try:
        with pa.memory_map(path) as source:
            table = pa.ipc.open_file(source).read_all()
        metadata = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
        found = metadata["format"], metadata["version"]
        if found != (_FORMAT, _VERSION):
            raise ValueError(f"its format is {found}, not {(_FORMAT, _VERSION)}")
        return _from_table(table, metadata)
    except (
        OSError,
        pa.ArrowException,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise UserError(
            f"cannot read {path}: {error}; run preprocess again", ExitCode.BAD_DATA
        ) from error


def _head(
    split: str, name: str, derivation: str | None, column: ColumnStatistics
) -> dict[str, Any]:
    return {
        "split": split,
        "column": name,
        "type": column.type.value,
        "derivation": derivation,
        "id_buckets": column.id_buckets,
        "are_dates": column.are_dates,
    }


def _to_batch(state: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    counted = state["values"] or {}
    row = {
        **state,
        **{name: str(state[name]) for name in _SUMS},
        **{k: counted.get(k) for k in ("undercount", "truncated", "most_held")},
    }
    lists = {
        **{k: pa.array(state[k]) for k in ("lows", "highs", "cell_counts")},
        "values": counted.get("values"),
        "value_counts": pa.array(counted["counts"]) if counted else None,
    }
    if counted:
        lists["values"] = _as_binary(lists["values"])
    return pa.record_batch(
        [
            _one_list(lists[field.name], field.type)
            if field.name in lists
            else pa.array([row[field.name]], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _one_list(values: pa.Array | None, kind: pa.DataType) -> pa.Array:
    if values is None:
        return pa.nulls(1, kind)
    offsets = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values.cast(kind.value_type))


def _as_binary(values: pa.Array) -> pa.Array:
    if pa.types.is_int64(values.type):
        values = values.cast(pa.string())
    return values.cast(pa.large_binary())


def _from_table(table: pa.Table, metadata: Mapping[str, str]) -> DatasetStatistics:
    heads = table.select(_HEAD).to_pylist()
    counted = table["values"].is_valid().to_pylist()
    columns = [
        (row, has)
        for row, has in zip(heads, counted, strict=True)
        if row["derivation"] is None
    ]
    derivations = {row["derivation"] for row in heads} - {None}
    statistics = DatasetStatistics(
        {row["column"]: ColumnType(row["type"]) for row, _ in columns},
        {row["column"] for row, has in columns if has},
        {
            row["column"]: row["id_buckets"]
            for row, _ in columns
            if row["id_buckets"] is not None
        },
        {row["column"] for row, _ in columns if row["are_dates"]},
        set(map(Derivation.from_text, derivations)),
        point_limit=int(metadata["point_limit"]),
        value_limit=int(metadata["value_limit"]),
    )
    for place, head in enumerate(heads):
        if head["derivation"] is None:
            column = statistics.split(head["split"])[head["column"]]
        else:
            derivation = Derivation.from_text(head["derivation"])
            column = statistics.derived(head["split"])[derivation]
        column.restore(_to_state({name: table[name][place] for name in _SCHEMA.names}))
    return statistics


def _to_state(row: Mapping[str, pa.Scalar]) -> dict[str, Any]:
    def array(name: str, kind: type) -> np.ndarray:
        return row[name].values.to_numpy(zero_copy_only=False).astype(kind)

    values = None
    if row["values"].is_valid:
        values = {
            "values": _typed_values(row["values"].values, row["type"].as_py()),
            "counts": array("value_counts", np.int64),
            **{n: row[n].as_py() for n in ("undercount", "truncated", "most_held")},
        }
    return {
        **{name: row[name].as_py() for name in _COUNTERS},
        **{name: int(row[name].as_py()) for name in _SUMS},
        "level": row["level"].as_py(),
        "lows": array("lows", np.float64),
        "highs": array("highs", np.float64),
        "cell_counts": array("cell_counts", np.int64),
        "values": values,
    }


def _typed_values(values: pa.Array, kind: str) -> pa.Array:
    if ColumnType(kind) is ColumnType.INT:
        return values.cast(pa.large_string()).cast(pa.int64())
    return values
