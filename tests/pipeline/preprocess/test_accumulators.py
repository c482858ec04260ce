"""Accumulators in files, and days of data merged from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline import dataset
from pipeline.preprocess import accumulators, constants, merge, statistics_files
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Declaration,
    Numeric,
    Scale,
    Split,
    UserError,
    Vocabulary,
)

SCHEMA = pa.schema([("i", pa.int64()), ("f", pa.float32()), ("s", pa.binary())])
TYPES = {"i": ColumnType.INT, "f": ColumnType.FLOAT, "s": ColumnType.STRING}
DECLARATION = Declaration(
    {n: Column(n, t, default="z" if n == "s" else 0) for n, t in TYPES.items()},
    {
        "i": Numeric("i", "i", Scale.LOG),
        "f": Numeric("f", "f"),
        "cuts": Bucketized("cuts", "f", quantiles=5),
        "s": Vocabulary("s", "s"),
        "iv": Vocabulary("iv", "i"),
    },
    Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
)


def empty(**limits):
    return DatasetStatistics(TYPES, {"i", "s"}, {"i": 50}, **limits)


def day(seed, rows=3000):
    random = np.random.default_rng(seed)
    missing = [random.random(rows) < 0.1 for _ in SCHEMA]
    words = [f"w{k}".encode() for k in random.zipf(1.5, rows) % 200] + [b"\xff\x00"]
    return pa.record_batch(
        [
            pa.array(random.integers(-20, 90, rows), mask=missing[0]),
            pa.array(random.lognormal(0, 9, rows).astype("f4"), mask=missing[1]),
            pa.array(words[-rows:], pa.binary(), mask=missing[2]),
        ],
        schema=SCHEMA,
    )


def write(tmp_path, name, statistics):
    directory = tmp_path / name
    directory.mkdir()
    statistics_files.write(str(directory), statistics)
    return str(directory)


def files_of(directory):
    names = (
        dataset.STATISTICS_FILE,
        dataset.STATISTICS_PROTO_FILE,
        dataset.ACCUMULATORS_FILE,
    )
    return [Path(directory, name).read_bytes() for name in names]


@pytest.mark.parametrize("limits", [{}, {"point_limit": 100}])
def test_days_merged_are_one_pass_over_all_days(tmp_path, limits):
    one_pass, directories = empty(**limits), []
    for number in range(4):
        statistics = empty(**limits)
        for split in ("train", "eval")[: number + 1]:
            batch = day(2 * number + (split == "eval"))
            statistics.add(split, batch)
            one_pass.add(split, batch.slice(0, 1111))
            one_pass.add(split, batch.slice(1111))
        directories.append(write(tmp_path, f"day{number}", statistics))
    merged = merge.merge_statistics(directories)
    backwards = merge.merge_statistics(directories[::-1])
    one = write(tmp_path, "one", one_pass)
    # Bit by bit: results, TFDV's form and the accumulators themselves.
    assert files_of(write(tmp_path, "merged", merged)) == files_of(one)
    assert files_of(write(tmp_path, "backwards", backwards)) == files_of(one)
    computed = [
        constants.compute_constants(DECLARATION, s["train"]) for s in (merged, one_pass)
    ]
    assert computed[0] == computed[1]


CELLS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(width=32),
    st.none() | st.binary(max_size=2),
)


@given(st.lists(st.tuples(st.sampled_from(["train", "test"]), CELLS), max_size=30))
@settings(deadline=None, max_examples=40)
def test_a_file_keeps_everything(tmp_path_factory, rows):
    statistics = empty(point_limit=4, value_limit=5)
    for split, row in rows:
        arrays = [pa.array([c], f.type) for c, f in zip(row, SCHEMA, strict=True)]
        statistics.add(split, pa.record_batch(arrays, schema=SCHEMA))
    path = str(tmp_path_factory.mktemp("a") / "accumulators.arrow")
    accumulators.write(path, statistics)
    read = accumulators.read(path)
    assert read.summary() == statistics.summary()
    again = path + "2"
    accumulators.write(again, read)
    assert Path(again).read_bytes() == Path(path).read_bytes()


def test_unlike_datasets_are_refused_by_name(tmp_path):
    batch = day(1, 10)
    directories = []
    for name, changes in (
        ("a", {}),
        ("b", {"want_values": {"s"}}),
        ("c", {"id_buckets": {"i": 51}}),
        ("d", {"columns": {**TYPES, "i": ColumnType.FLOAT}}),
        ("e", {"point_limit": 7}),
    ):
        settings_ = {
            "columns": TYPES,
            "want_values": {"i", "s"},
            "id_buckets": {"i": 50},
            **changes,
        }
        statistics = DatasetStatistics(**settings_)
        if name != "d":
            statistics.add("train", batch)
        else:
            statistics.want_values = frozenset("s")
            statistics.id_buckets = {}
            statistics.add("train", batch.set_column(0, "i", batch.column("f")))
        directories.append(write(tmp_path, name, statistics))
    for other, message in zip(
        directories[1:],
        ("values of column i", "column i has other buckets", "int in one", "limits"),
        strict=True,
    ):
        with pytest.raises(UserError, match=message):
            merge.merge_statistics([directories[0], other])
    with pytest.raises(UserError, match="cannot read .*accumulators.arrow"):
        merge.merge_statistics([str(tmp_path)])
    path = tmp_path / "accumulators.arrow"
    path.write_bytes(b"ARROW1 no")
    with pytest.raises(UserError, match="run preprocess again"):
        merge.merge_statistics([str(tmp_path)])


def test_statistics_proto_agrees_with_numpy(tmp_path):
    statistics = empty()
    batches = {"train": day(1), "eval": day(2, 500)}
    for split, batch in batches.items():
        statistics.add(split, batch)
    content = files_of(write(tmp_path, "d", statistics))[1]
    found = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
    assert [d.name for d in found.datasets] == ["eval", "train", "all"]
    batches["all"] = pa.Table.from_batches(list(batches.values())).combine_chunks()
    for data in found.datasets:
        rows = batches[data.name]
        assert data.num_examples == rows.num_rows
        features = {f.path.step[0]: f for f in data.features}
        assert list(features) == ["i", "f", "s"]
        for name in "if":
            check_numbers(features[name].num_stats, rows.column(name))
        outside = [x for x in rows["i"].to_pylist() if x is not None]
        outside = sum(not 0 <= x < 50 for x in outside)
        (custom,) = features["i"].custom_stats
        assert (custom.name, custom.num) == ("ids_out_of_range", outside)
        check_text(features["s"].string_stats, rows.column("s"))


def check_common(common, column):
    assert common.num_missing == column.null_count
    assert common.num_non_missing == len(column) - column.null_count
    assert common.min_num_values == common.max_num_values == 1
    assert common.avg_num_values == 1


def check_numbers(numbers, column):
    check_common(numbers.common_stats, column)
    values = column.drop_null().to_numpy().astype(np.float64)
    assert numbers.mean == pytest.approx(values.mean(), rel=1e-12)
    assert numbers.std_dev == pytest.approx(values.std(), rel=1e-12)
    assert numbers.num_zeros == np.sum(values == 0)
    assert (numbers.min, numbers.max) == (values.min(), values.max())
    assert numbers.median == np.quantile(values, 0.5, method="inverted_cdf")
    standard, quantiles = numbers.histograms
    counts, edges = np.histogram(values, bins=10)
    assert [b.sample_count for b in standard.buckets] == counts.tolist()
    np.testing.assert_allclose([b.low_value for b in standard.buckets], edges[:-1])
    cuts = np.quantile(values, np.arange(11) / 10, method="inverted_cdf")
    assert [b.low_value for b in quantiles.buckets] == cuts[:-1].tolist()
    assert [b.high_value for b in quantiles.buckets] == cuts[1:].tolist()


def check_text(text, column):
    check_common(text.common_stats, column)
    values = column.drop_null().to_pylist()
    assert text.unique == len(set(values))
    assert text.avg_length == pytest.approx(np.mean([len(v) for v in values]))
    counts = sorted((-values.count(v), v) for v in set(values))
    top = [(t.value, t.frequency) for t in text.top_values]
    assert top == [(v.decode("utf-8", "backslashreplace"), -c) for c, v in counts][:20]
    ranks = [(b.low_rank, b.sample_count) for b in text.rank_histogram.buckets]
    assert ranks == list(enumerate(-c for c, _ in counts))
