"""What users of such pipelines have met with TFRecord files, at the level of the stage.

Each class is one situation, under the number it has in our collection of them.
"""

from __future__ import annotations

import itertools
import json

import pytest
from helpers_formats import example, write_records
from helpers_stage import all_values, preprocess

from pipeline import app
from pipeline.types import ExitCode, UserError

DECLARATION = """
label: {column: y, classes: [0, 1]}
split: {fractions: {train: 0.98, eval: 0.01, test: 0.01}}
columns:
  n: {type: int}
  y: {type: int}
features:
  n: {kind: numeric}
"""


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.yaml"
    path.write_text(DECLARATION)
    return path


def write(folder, ending=""):
    """Writes 4 files of 100 examples, ids 0 to 399."""
    folder.mkdir(exist_ok=True)
    paths = []
    for file in range(4):
        rows = ({"n": 100 * file + i, "y": i % 2} for i in range(100))
        path = folder / f"train-{file + 1}.tfrecord{ending}"
        paths.append(write_records(path, [example(row) for row in rows]))
    return paths


def ids(directory):
    return sorted(row["n"] for row in all_values(directory))


class TestTfr1:
    """A cut off or corrupted record: a name to fix, or an honest count."""

    @pytest.mark.parametrize(
        ("file", "good", "change"),
        [
            (3, 99, lambda data: data[:-7]),
            # A record of the second file takes 49 bytes or more; this is in its second.
            (2, 1, lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:]),
        ],
    )
    def test_damage(self, tmp_path, features, capsys, file, good, change):
        path = write(tmp_path / "data")[file - 1]
        path.write_bytes(change(path.read_bytes()))
        pattern = tmp_path / "data" / "train*"
        with pytest.raises(UserError, match=f"train-{file}.tfrecord: record") as caught:
            preprocess(tmp_path / "d", pattern, features)
        assert caught.value.exit_code is ExitCode.BAD_DATA
        assert f"record {good + 1}, at byte" in str(caught.value)
        assert not (tmp_path / "d").exists()

        manifest = preprocess(tmp_path / "d", pattern, features, skip_bad_records=True)
        lost = range(100 * (file - 1) + good, 100 * file)
        expected = sorted(set(range(400)) - set(lost))
        assert ids(tmp_path / "d") == expected
        assert manifest.results["rows_read"] == 300 + good
        assert sum(manifest.results["rows_written"].values()) == 300 + good
        (loss,) = manifest.results["lost"]
        assert loss["path"] == str(path) and loss["record"] == good + 1
        stored = json.loads((tmp_path / "d" / "manifest.json").read_text())
        assert stored["results"]["lost"] == [loss]
        assert app.main(["show", str(tmp_path / "d")]) == 0
        assert f"left out {path} from record {good + 1} on" in capsys.readouterr().out

    def test_exit_code_and_summary_of_the_command(self, tmp_path, features, capsys):
        path = write(tmp_path / "data")[2]
        path.write_bytes(path.read_bytes()[:-7])
        command = [
            "preprocess",
            f"--input={tmp_path}/data/train*",
            f"--features={features}",
            f"--dataset_dir={tmp_path / 'd'}",
        ]
        assert app.main(command) == ExitCode.BAD_DATA
        assert "train-3.tfrecord: record 100, at byte" in capsys.readouterr().err
        assert app.main([*command, "--skip_bad_records"]) == 0
        out = capsys.readouterr().out
        assert "399 rows read" in out
        assert f"left out: {path} from record 100 on" in out


class TestTfr2:
    """Compression is detected for each file by its content."""

    def test_gzip_plain_mixed_and_misnamed(self, tmp_path, features):
        gzipped = write(tmp_path / "gzip", ".gz")
        plain = write(tmp_path / "plain")
        mixed = tmp_path / "mixed"
        misnamed = tmp_path / "misnamed"
        mixed.mkdir()
        misnamed.mkdir()
        sources = zip(itertools.cycle((gzipped, plain)), range(4), strict=False)
        for files, i in sources:
            (mixed / files[i].name).write_bytes(files[i].read_bytes())
            (misnamed / plain[i].name).write_bytes(files[i].read_bytes())
        for folder in ("gzip", "plain", "mixed", "misnamed"):
            directory = tmp_path / f"{folder}.dataset"
            preprocess(directory, tmp_path / folder / "train*", features)
            assert ids(directory) == list(range(400)), folder
