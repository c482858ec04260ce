"""A declaration inferred from data: types, markers, defaults, label, features."""

import gzip
import pathlib

import pytest

from pipeline import declaration as declarations
from pipeline.preprocess.csv_source import read_batches
from pipeline.preprocess.infer import infer_declaration
from pipeline.preprocess.sources.delimited import DelimitedSource
from pipeline.preprocess.typed import convert
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Date,
    DatePart,
    Hashed,
    Label,
    Numeric,
    Scale,
    Task,
    UserError,
    Vocabulary,
)

CENSUS = str(pathlib.Path(__file__).parents[3] / "examples/census/adult.csv.gz")
INT, FLOAT, STRING = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING


@pytest.fixture
def infer(tmp_path):
    """Infers from columns given as lists of texts, beside a harmless feature."""

    def infer_columns(label=None, max_rows=1_000_000, **columns):
        count = len(next(iter(columns.values())))
        columns = {"other": [str(i % 2) for i in range(count)], **columns}
        rows = [columns, *zip(*columns.values(), strict=True)]
        path = tmp_path / "data.csv"
        path.write_text("".join(",".join(row) + "\n" for row in rows))
        return infer_declaration(
            [DelimitedSource(str(path))], label=label, max_rows=max_rows
        )

    return infer_columns


class TestColumns:
    @pytest.mark.parametrize(
        "values, expected",
        [
            (["1", "-2", "+3"], (INT, ("",), None)),
            (["1", "2", "", "4", "9"], (INT, ("",), 2)),
            (["3"] * 150 + ["1.5"], (FLOAT, ("",), None)),
            (["0.1", " NA", "NA", "0.3", "0.1"], (FLOAT, ("", "NA"), 0.1)),
            (["1", "nan", "NaN", "-"], (INT, ("", "nan", "NaN", "-"), 1)),
            (["1", "inf"], (STRING, ("",), None)),
            (["1", "1e400"], (STRING, ("",), None)),
            (["9720798423", "9223372036854775807"], (INT, ("",), None)),
            (["9720798423", "9223372036854775808"], (STRING, ("",), None)),
            (["9223372036854775808", "1.5"], (FLOAT, ("",), None)),
            (["a", "?", "b", "?"], (STRING, ("", "?"), "?")),
            (["a", "NA", "", "", ""], (STRING, ("", "NA"), "NA")),
            (["a", "NA", "None", " None"], (STRING, ("", "NA", "None"), "None")),
            (["a", "", "b"], (STRING, ("",), "missing")),
            (["", "?"], (STRING, ("", "?"), "?")),
            (["1", "x", "NA"], (STRING, ("", "NA"), "NA")),
        ],
    )
    def test_type_markers_default(self, infer, values, expected):
        column = infer(x=values).columns["x"]
        assert column == Column("x", *expected)
        assert type(column.default) is type(expected[2])

    def test_order_is_that_of_the_file(self, infer):
        assert list(infer(z=["1", "2"], a=["x", "y"]).columns) == ["other", "z", "a"]

    def test_long_texts(self, infer):
        long = "x" * 1000
        declaration = infer(label="y", x=[long, "", "b"], y=[long + "1", long, long])
        assert declaration.columns["x"].default == "missing"
        assert declaration.label.classes == (long, long + "1")

    def test_first_rows_only(self, infer):
        columns = {"x": ["1", "2", "?"]}
        assert infer(max_rows=2, **columns).columns["x"].missing == ("",)
        assert infer(max_rows=3, **columns).columns["x"].missing == ("", "?")


class TestLabel:
    @pytest.mark.parametrize(
        "values, classes",
        [
            (["b", " a", "a", ""], ("a", "b")),
            (["+", "-", "-"], ("+", "-")),
            (["yes", "no", "NA"], ("no", "yes")),
            (["10", "9", "9", "+9"], ("9", "10")),
            (["1", "0", "?"], ("0", "1")),
            ([str(i) for i in range(101)], None),
            (["0.5", "1"], None),
        ],
    )
    def test_classes(self, infer, values, classes):
        declaration = infer(label="y", y=values)
        assert declaration.label == Label("y", classes)
        assert declaration.columns["y"].required
        assert set(declaration.features) == {"other", "other_bucket"}

    def test_markers_of_a_text_label(self, infer):
        column = infer(label="y", y=["None", "Mild", "?"]).columns["y"]
        assert column.missing == ("", "?")

    @pytest.mark.parametrize(
        "values, message",
        [
            (["a", "a"], "--label=y: the column has the same value in all rows"),
            (["1", "01"], "the same value in all rows"),
            (["", "?"], "has no value"),
            ([f"t{i}" for i in range(101)], "101 different texts"),
        ],
    )
    def test_useless(self, infer, values, message):
        with pytest.raises(UserError, match=message):
            infer(label="y", y=values)

    def test_unknown(self, infer):
        message = "--label=z: there is no such column; the columns are other, y"
        with pytest.raises(UserError, match=message):
            infer(label="z", y=["1", "2"])

    def test_not_utf8(self, tmp_path):
        path = tmp_path / "data.csv"
        path.write_bytes(b"x,y\n1,\xff\n2,a\n")
        with pytest.raises(UserError, match="--label=y: a label is not UTF-8"):
            infer_declaration([DelimitedSource(str(path))], label="y")


class TestFeatures:
    def test_numbers(self, infer):
        declaration = infer(i=["1", "2", "2"], f=["1.5", "2", "-3"])
        assert {n: f for n, f in declaration.features.items() if "other" not in n} == {
            "i": Numeric("i", "i", Scale.ZSCORE),
            "i_bucket": Bucketized("i_bucket", "i", quantiles=10),
            "f": Numeric("f", "f", Scale.ZSCORE),
            "f_bucket": Bucketized("f_bucket", "f", quantiles=10),
        }

    @pytest.mark.parametrize(
        "values, scale",
        [
            (["0", "0", "1001"], Scale.LOG),
            (["0", "0", "1000"], Scale.ZSCORE),
            (["-1", "0", "0", "99999"], Scale.ZSCORE),
            (["0.5", "0.5", "1e9"], Scale.LOG),
        ],
    )
    def test_scale(self, infer, values, scale):
        assert infer(x=values).features["x"].scale is scale

    @pytest.mark.parametrize(
        "distinct, embedding", [(2, None), (20, None), (21, 13), (1000, 32)]
    )
    def test_vocabulary(self, infer, distinct, embedding):
        values = [f"v{i % distinct}" for i in range(distinct * 3)]
        expected = Vocabulary("x", "x", embedding=embedding)
        assert infer(x=values).features["x"] == expected

    def test_missing_is_a_value_of_a_vocabulary(self, infer):
        assert isinstance(infer(x=["a", ""]).features["x"], Vocabulary)
        values = [f"v{i % 20}" for i in range(60)] + [""]
        assert infer(x=values).features["x"].embedding == 13

    def test_hashed(self, infer):
        values = [f"v{i % 50_001}" for i in range(100_002)]
        assert infer(x=values).features["x"] == Hashed("x", "x", 10_000, 16)

    def test_dates(self, infer):
        days = [f"2024-0{1 + i % 9}-1{i % 10}" for i in range(90)]
        found = infer(x=[*days, "", "NA"]).features
        parts = [(f.part, f.use) for f in found.values() if isinstance(f, Date)]
        assert parts == [
            (DatePart.MONTH, "both"),
            (DatePart.DAY, "both"),
            (DatePart.WEEKDAY, "both"),
        ]
        assert list(found)[2:] == ["x_month", "x_day", "x_weekday"]

    def test_times_are_no_identifiers(self, infer):
        times = [f"20{10 + i}-05-07 {i % 24:02d}:30:00.5" for i in range(60)]
        found = infer(x=times, x_hour=["a", "b"] * 30).features
        assert found["x_year"] == Date("x_year", "x", DatePart.YEAR, use="deep")
        assert found["x_hour_2"].part is DatePart.HOUR
        assert isinstance(found["x_hour"], Vocabulary)

    @pytest.mark.parametrize(
        "values",
        [
            ["2024-01-01", "2024-01-02"] * 40,
            [f"2024-0{1 + i % 9}-1{i % 10}" for i in range(90)] + ["soon"] * 90,
        ],
    )
    def test_few_dates_and_what_is_no_date(self, infer, values):
        assert isinstance(infer(x=values).features["x"], Vocabulary)

    @pytest.mark.parametrize(
        "values",
        [
            [str(i) for i in range(100)],
            [f"a{i}" for i in range(100)],
            ["7"] * 10,
            ["7", "", "7"],
            ["a", "a"],
            ["", ""],
            ["?", ""],
        ],
    )
    def test_left_out(self, infer, values):
        declaration = infer(x=values)
        assert set(declaration.features) == {"other", "other_bucket"}
        assert "x" in declaration.columns

    @pytest.mark.parametrize(
        "values",
        [
            [str(i) for i in range(99)] + ["0"],
            [str(i) for i in range(20)],
            [f"{i}.5" for i in range(100)],
            [f"a{i // 2}" for i in range(100)],
        ],
    )
    def test_kept(self, infer, values):
        assert "x" in infer(x=values).features

    def test_names(self, infer):
        values = ["1", "2", "1"]
        columns = {"a b": values, "a_b": values, "a_b_bucket": values, "é": values}
        declaration = infer(**columns)
        assert [(n, f.column) for n, f in declaration.features.items()][2:] == [
            ("a_b", "a b"),
            ("a_b_bucket_2", "a b"),
            ("a_b_2", "a_b"),
            ("a_b_2_bucket", "a_b"),
            ("a_b_bucket", "a_b_bucket"),
            ("a_b_bucket_bucket", "a_b_bucket"),
            ("column", "é"),
            ("column_bucket", "é"),
        ]

    def test_none_is_an_error(self, tmp_path):
        path = tmp_path / "data.csv"
        path.write_text("x,y\n1,0\n1,1\n")
        with pytest.raises(UserError, match="can serve as a feature"):
            infer_declaration([DelimitedSource(str(path))], label="y")


class TestFiles:
    def write(self, tmp_path, *texts):
        paths = []
        for i, text in enumerate(texts):
            paths.append(tmp_path / f"{i}.csv")
            paths[-1].write_text(text)
        return list(map(str, paths))

    def test_all_are_read(self, tmp_path):
        paths = self.write(tmp_path, "a,b\n1,2\n", "b,a\n0.5,7\n")
        columns = infer_declaration(
            [DelimitedSource(p) for p in paths], label=None
        ).columns
        assert [(c.name, c.type) for c in columns.values()] == [
            ("a", INT),
            ("b", FLOAT),
        ]

    def test_different_columns(self, tmp_path):
        paths = self.write(tmp_path, "a,b\n1,2\n", "a,c\n1,2\n")
        with pytest.raises(UserError, match="differ in their columns: .* has b, c"):
            infer_declaration([DelimitedSource(p) for p in paths], label=None)

    def test_no_rows(self, tmp_path):
        with pytest.raises(UserError, match="no rows"):
            infer_declaration(
                [DelimitedSource(p) for p in self.write(tmp_path, "a,b\n")], label=None
            )
        paths = self.write(tmp_path, "a,b\n1;2\n")
        with pytest.raises(UserError, match="line 2 of .* has 1 field, expected 2"):
            infer_declaration([DelimitedSource(p) for p in paths], label=None)
        with pytest.raises(UserError, match="no file"):
            infer_declaration([], label=None)


@pytest.fixture(scope="module")
def census():
    return infer_declaration([DelimitedSource(CENSUS)], label="income")


class TestCensus:
    def test_columns_and_label(self, census):
        missing = {n: c for n, c in census.columns.items() if not c.required}
        assert set(missing) == {"workclass", "occupation", "native-country"}
        assert missing["workclass"] == Column("workclass", STRING, ("", "?"), "?")
        assert census.label == Label("income", ("<=50K", ">50K"))
        assert census.label.task is Task.BINARY
        assert census.columns["age"].type is INT

    def test_features(self, census):
        assert census.features["capital-gain"].scale is Scale.LOG
        assert census.features["age"].scale is Scale.ZSCORE
        assert census.features["native-country"].embedding == 15
        assert census.features["race"].embedding is None
        assert "fnlwgt" in census.features
        assert census.split.fractions == {"train": 0.8, "eval": 0.1, "test": 0.1}

    def test_all_rows_fit(self, census):
        columns = tuple(census.columns.values())
        for batch in read_batches(CENSUS, [column.name for column in columns]):
            assert not convert(batch, columns, census.label)[1]

    def test_written_and_read_back(self, census, tmp_path):
        path = tmp_path / "features.yaml"
        path.write_text(declarations.dump(census))
        assert declarations.load(str(path)) == census

    def test_twin_gives_the_same(self, census, tmp_path):
        text = gzip.decompress(pathlib.Path(CENSUS).read_bytes())
        twin = tmp_path / "twin.csv"
        twin.write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
        assert infer_declaration([DelimitedSource(str(twin))], label="income") == census
