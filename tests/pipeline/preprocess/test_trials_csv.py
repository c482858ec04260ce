"""What users of such pipelines have met with CSV files, at the level of the stage.

Each class is one situation, under the number it has in our collection of them.
"""

from __future__ import annotations

import json

import pytest
from helpers_stage import all_values, preprocess, read_directly, records

from pipeline.types import ExitCode, UserError

HEAD = "label: {column: y, classes: [0, 1]}\nsplit: {fractions: {train: 0.98, eval: 0.01, test: 0.01}}\n"


@pytest.fixture(params=["dataset", "direct"])
def run(tmp_path, request):
    """Writes a file and its declaration, reads them and returns the manifest.

    Both by way of a dataset and without one: the two must agree.
    """
    read = preprocess if request.param == "dataset" else read_directly

    def run_stage(data: str | bytes, columns: str, name="d", features="", **changes):
        text = data if isinstance(data, bytes) else data.encode()
        (tmp_path / f"{name}.csv").write_bytes(text)
        declaration = tmp_path / f"{name}.yaml"
        features = features or "  y2: {kind: vocabulary, column: other}\n"
        columns += "  other: {type: string}\n" if "other:" not in columns else ""
        declaration.write_text(
            f"{HEAD}columns:\n{columns}  y: {{type: int}}\nfeatures:\n{features}"
        )
        return read(tmp_path / name, tmp_path / f"{name}.csv", declaration, **changes)

    return run_stage


def _rejects(directory):
    inside = directory / "rejects.jsonl"
    return inside if inside.exists() else directory.with_name("d.rejects.jsonl")


class TestCsv1:
    """A byte order mark and CRLF carry no data."""

    @pytest.mark.parametrize("header", ["age,other,y", "y,age,other"])
    def test_twin_is_the_same(self, run, tmp_path, header):
        place = header.split(",").index("y")
        rows = []
        for i in range(60):
            row = [str(20 + i), f"é{i % 7}"]
            row.insert(place, str(i % 2))
            rows.append(",".join(row))
        text = "\n".join([header, *rows]) + "\n"
        columns = "  age: {type: int}\n  other: {type: string}\n"
        one = run(text, columns, "one")
        twin = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
        two = run(twin, columns, "two")
        run(text.replace("\n", "\r"), columns, "three")
        assert records(tmp_path / "one") == records(tmp_path / "two")
        assert records(tmp_path / "one") == records(tmp_path / "three")
        assert one.results["rows_written"] == two.results["rows_written"]
        for row in all_values(tmp_path / "two"):
            assert set(row) == {"age", "other", "y"}
            assert not row["other"].endswith(b"\r")


class TestCsv2:
    """Quoted fields may hold commas, doubled quotes and line breaks."""

    def test_four_logical_records(self, run, tmp_path):
        fields = ["plain", "a,b", 'say "hi"', "two\nlines"]
        quoted = ["plain", '"a,b"', '"say ""hi"""', '"two\nlines"']
        text = "other,y\n" + "".join(f"{f},1\n" for f in quoted)
        manifest = run(text, "")
        assert manifest.results["rows_read"] == 4
        assert sum(manifest.results["rows_written"].values()) == 4
        found = sorted(row["other"].decode() for row in all_values(tmp_path / "d"))
        assert found == sorted(fields)


class TestCsv3:
    """A missing value becomes the declared default, never 0 or NaN unnoticed."""

    TEXTS = ("", "NA", " NA", "NULL", "nan", '"1,000"')

    def test_optional_column(self, run, tmp_path):
        text = "n,other,y\n" + "".join(f"{t},{i},1\n" for i, t in enumerate(self.TEXTS))
        columns = "  n: {type: float, missing: [NA, 'NULL'], default: 3.5}\n"
        manifest = run(text, columns, max_reject_fraction=1.0)
        rows = all_values(tmp_path / "d")
        # Absent in the record: the parser puts the declared default there.
        assert len(rows) == 4 and not any("n" in row for row in rows)
        assert manifest.results["missing_values"] == {"n": 4}
        rejects = [
            json.loads(line)
            for line in _rejects(tmp_path / "d").read_text().splitlines()
        ]
        assert [(r["line"], r["column"]) for r in rejects] == [(6, "n"), (7, "n")]
        assert "'nan'" in rejects[0]["reason"] and "'1,000'" in rejects[1]["reason"]

    def test_required_column(self, run, tmp_path):
        text = "n,other,y\n1,0,1\n NA,1,1\n"
        columns = "  n: {type: float, missing: [NA]}\n"
        with pytest.raises(UserError, match="column n is required .*' NA'") as caught:
            run(text, columns)
        assert caught.value.exit_code is ExitCode.BAD_DATA
        (line,) = (tmp_path / "d.rejects.jsonl").read_text().splitlines()
        reject = json.loads(line)
        assert reject["file"].endswith("d.csv") and reject["line"] == 3
        assert reject["column"] == "n"


class TestCsv4:
    """Ragged rows are named by file and line; blank lines are ignored."""

    LINES = tuple(f"{i},{i % 2}" for i in range(500))

    @pytest.mark.parametrize(
        ("row", "count"), [("298", "1 field"), ("1,1,1", "3 fields")]
    )
    def test_ragged_row(self, run, tmp_path, row, count):
        lines = [*self.LINES]
        lines[298] = row
        text = "\n".join(["other,y", *lines]) + "\n"
        with pytest.raises(UserError, match=f"{count}, expected 2") as caught:
            run(text, "", max_reject_fraction=0.0)
        assert caught.value.exit_code is ExitCode.BAD_DATA
        reject = json.loads((tmp_path / "d.rejects.jsonl").read_text())
        assert (reject["line"], reject["text"]) == (300, row)
        assert reject["file"].endswith("d.csv")
        manifest = run(text, "", max_reject_fraction=0.01)
        assert manifest.results["rows_rejected"] == 1
        assert sum(manifest.results["rows_written"].values()) == 499

    def test_blank_lines(self, run):
        lines = [*self.LINES[:250], "", *self.LINES[250:], "", ""]
        manifest = run("\n".join(["other,y", *lines]) + "\n", "")
        assert sum(manifest.results["rows_written"].values()) == 500
        assert manifest.results["rows_rejected"] == 0


class TestCsv5:
    """Numbers are exact or rejected; types come from the declaration."""

    def test_large_ids(self, run, tmp_path):
        ids = ["9720798423", "9223372036854775807", "9223372036854775808"]
        text = "id,other,y\n" + "".join(f"{i},x,1\n" for i in ids)
        manifest = run(text, "  id: {type: int}\n", max_reject_fraction=0.5)
        assert sorted(row["id"] for row in all_values(tmp_path / "d")) == [
            9720798423,
            9223372036854775807,
        ]
        assert manifest.results["rejected_by_column"] == {"id": 1}
        assert ids[2] in manifest.results["first_reason"]["id"]

    def test_beyond_float(self, run):
        manifest = run(
            "f,other,y\n1.5,x,1\n1e400,x,1\n",
            "  f: {type: float}\n",
            max_reject_fraction=0.5,
        )
        assert manifest.results["rejected_by_column"] == {"f": 1}

    def test_a_decimal_behind_many_ints(self, run, tmp_path):
        numbers = [*map(str, range(150)), "1.5"]
        text = "f,other,y\n" + "".join(f"{n},x,1\n" for n in numbers)
        run(text, "  f: {type: float}\n")
        assert 1.5 in [row["f"] for row in all_values(tmp_path / "d")]
