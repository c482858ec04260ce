"""Tests of pipeline/preprocess/shards.py."""

from __future__ import annotations

import glob
import hashlib
import os
import subprocess
import sys

import pytest

from pipeline.preprocess import shards


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path)


def read(path):
    from pipeline.compat import tf

    return list(tf.compat.v1.io.tf_record_iterator(path))


def write(directory, split, key, records, **options):
    with shards.ShardWriter(directory, split, key, **options) as writer:
        writer.write(records)
    return writer.close()


def test_records_come_back_and_the_facts_are_right(directory):
    records = [b"", b"\0\xff" * 100, b"x"]
    (shard,) = write(directory, "train", "0", records)
    assert read(shard.path) == records
    assert (shard.split, shard.order_key, shard.part) == ("train", "0", 0)
    assert shard.rows == 3
    assert shard.bytes == os.path.getsize(shard.path) == sum(map(len, records)) + 48
    with open(shard.path, "rb") as f:
        assert shard.digest == hashlib.sha256(f.read()).hexdigest()


def test_rolls_when_full_over_several_calls(directory):
    writer = shards.ShardWriter(directory, "eval", "k", shard_bytes=100)
    for start in range(0, 20, 4):
        writer.write(b"%030d" % i for i in range(start, start + 4))
    parts = writer.close()
    assert [s.rows for s in parts] == [3] * 6 + [2]
    assert [s.part for s in parts] == list(range(7))
    assert [r for s in parts for r in read(s.path)] == [b"%030d" % i for i in range(20)]


def test_no_pattern_of_a_reader_matches_before_finalize(directory):
    write(directory, "train", "0", [b"a"])
    assert glob.glob(os.path.join(directory, "*")) == []
    assert glob.glob(os.path.join(directory, "train*")) == []


def test_finalize_orders_by_key_whatever_the_order_of_writing(tmp_path):
    def run(name, order):
        directory = tmp_path / name
        directory.mkdir()
        written = []
        for key in order:
            written += write(
                str(directory), "train", key, [key.encode()] * 6, shard_bytes=60
            )
        written += write(str(directory), "test", "z", [b"t"])
        return directory, shards.finalize(str(directory), reversed(written))

    first_directory, first = run("first", ["a", "a-", "b", "c"])
    second_directory, second = run("second", ["c", "a-", "b", "a"])
    names = sorted(os.listdir(first_directory))
    assert names == sorted(os.listdir(second_directory))
    assert names[0] == "test-00000-of-00001.tfrecord"
    assert names[-1] == "train-00007-of-00008.tfrecord"
    assert [os.path.basename(s.path) for s in first] == names
    assert [s.digest for s in first] == [s.digest for s in second]
    train = [r for s in first if s.split == "train" for r in read(s.path)]
    assert train == [k for k in (b"a", b"a-", b"b", b"c") for _ in range(6)]


def test_a_split_without_rows_has_no_shards(directory):
    assert write(directory, "test", "0", []) == ()
    assert os.listdir(directory) == []
    assert shards.finalize(directory, []) == ()


def test_finalize_removes_shards_of_lost_writers_only(directory):
    lost = write(directory, "train", "0", [b"lost"])
    kept = write(directory, "train", "0", [b"kept"])
    other = os.path.join(directory, "schema.json")
    open(other, "w").close()
    (shard,) = shards.finalize(directory, kept)
    assert not os.path.exists(lost[0].path)
    assert read(shard.path) == [b"kept"]
    assert sorted(os.listdir(directory)) == sorted(
        ["schema.json", os.path.basename(shard.path)]
    )


def test_the_same_rows_twice_are_refused(directory):
    twice = [*write(directory, "a", "0", [b"x"]), *write(directory, "a", "0", [b"x"])]
    with pytest.raises(ValueError, match="two shards at"):
        shards.finalize(directory, twice)
    assert len(os.listdir(directory)) == 2


def test_an_exception_leaves_no_files(directory):
    def broken():
        yield b"x" * 100
        yield b"y"
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        write(directory, "train", "0", broken(), shard_bytes=50)
    assert os.listdir(directory) == []


def test_the_module_does_not_load_tensorflow():
    code = (
        "import sys, pipeline.preprocess.shards;"
        "sys.exit(any(m in sys.modules for m in ('tensorflow', 'apache_beam')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
