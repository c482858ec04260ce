"""The declaration reader: what it takes, and what it says of what it does not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import declaration
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Crossed,
    Declaration,
    Hashed,
    Label,
    Numeric,
    Scale,
    Split,
    Task,
    UserError,
    Vocabulary,
)

HERE = "¦"
"""Marks the place in a text that the error must name."""


def load(tmp_path: Path, text: str | bytes) -> Declaration:
    path = tmp_path / "features.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return declaration.load(str(path))


def error_of(tmp_path: Path, text: str | bytes) -> str:
    """Returns the one line, without the directory."""
    with pytest.raises(UserError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert "Error" not in message
    return message.replace(f"{tmp_path}/", "")


def place_of_mark(text: str) -> tuple[str, str]:
    """Returns line:column of the mark, and the text without it."""
    before, after = text.split(HERE)
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return f"{line}:{column}", before + after


def whole(
    columns: str = "", features: str = "", top: str = "", label: str = "{column: y}"
) -> str:
    """Returns a declaration with some more lines in its parts."""
    return f"""\
label: {label}
{top}
columns:
  n: {{type: int}}
  f: {{type: float}}
  s: {{type: string}}
  y: {{type: float}}
  k: {{type: int}}
  {columns}
features:
  n: {{kind: numeric}}
  {features}
"""


def test_a_whole_declaration(tmp_path):
    text = """
# A comment.
label: {column: y, classes: [a, b, c]}
weight: w
split:
  fractions: {train: 0.5, eval: 0.25, test: 0.25}
  key: [s, n]
  salt: 7
columns:
  n: {type: int, missing: [" NA ", "-", NA], default: -3}
  f: {type: float, default: 1e-3}
  s: {type: string, missing: ["?"], default: no}
  w: {type: float}
  y: {type: string}
features:
  n: {kind: numeric, scale: log, use: both}
  cut: {kind: bucketized, column: f, boundaries: [-1, 0.5, 1e3], embedding: 2}
  parts: {kind: bucketized, column: n, quantiles: 4, embedding: null}
  s: {kind: vocabulary, top_k: 10, min_count: 2, oov_buckets: 3}
  h: {kind: hashed, column: n, buckets: 1_000, embedding: 4, use: deep}
  x: {kind: crossed, of: [cut, s, h], buckets: 50}
"""
    loaded = load(tmp_path, text)
    assert loaded == Declaration(
        columns={
            "n": Column("n", ColumnType.INT, ("", "NA", "-"), -3),
            "f": Column("f", ColumnType.FLOAT, ("",), 0.001),
            "s": Column("s", ColumnType.STRING, ("", "?"), "no"),
            "w": Column("w", ColumnType.FLOAT),
            "y": Column("y", ColumnType.STRING),
        },
        features={
            "n": Numeric("n", "n", Scale.LOG, "both"),
            "cut": Bucketized("cut", "f", (-1.0, 0.5, 1000.0), None, 2),
            "parts": Bucketized("parts", "n", None, 4),
            "s": Vocabulary("s", "s", 10, 2, 3),
            "h": Hashed("h", "n", 1000, 4, "deep"),
            "x": Crossed("x", ("cut", "s", "h"), 50),
        },
        split=Split({"train": 0.5, "eval": 0.25, "test": 0.25}, ("s", "n"), "7"),
        label=Label("y", ("a", "b", "c")),
        weight="w",
    )
    assert loaded.label.task is Task.MULTI_CLASS
    assert [c.name for c in loaded.input_columns] == ["n", "f", "s"]
    assert list(loaded.features) == ["n", "cut", "parts", "s", "h", "x"]


def test_label_weight_and_split_may_be_left_out(tmp_path):
    loaded = load(tmp_path, "columns: {a: {type: int}}\nfeatures: {a: {kind: numeric}}")
    assert loaded.label is None
    assert loaded.weight is None
    assert loaded.split == Split({"train": 0.8, "eval": 0.1, "test": 0.1})


@pytest.mark.parametrize(
    "classes", ["[yes, no]", "[Yes, yes, 1.0, 1, 0x1, null, ~, 2020-01-01, .nan]"]
)
def test_classes_are_kept_as_written(tmp_path, classes):
    text = whole("c: {type: string}", label=f"{{column: c, classes: {classes}}}")
    written = tuple(classes.strip("[]").split(", "))
    assert load(tmp_path, text).label.classes == written


def test_classes_of_an_int_column_may_be_quoted_or_not(tmp_path):
    text = whole(label="{column: k, classes: ['0', 1, -2]}")
    assert load(tmp_path, text).label.classes == ("0", "1", "-2")


def test_aliases_and_crlf(tmp_path):
    text = "columns: {a: &t {type: int}, b: *t}\nfeatures: {a: {kind: numeric}}\n"
    loaded = load(tmp_path, text.replace("\n", "\r\n"))
    assert {c.type for c in loaded.columns.values()} == {ColumnType.INT}


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    text = "\ufeff" + whole().removeprefix("label: {column: y}\n").lstrip()
    assert list(load(tmp_path, text).columns) == ["n", "f", "s", "y", "k"]


# Each text, and what the message must hold.
WRONG = {
    "top is a list": (f"{HERE}- a", "needs a mapping"),
    "top is a word": (f"{HERE}word", "needs a mapping"),
    "no columns": (f"{HERE}features: {{}}", "needs columns"),
    "columns is a list": (f"columns: {HERE}[]\nfeatures: {{}}", "columns: needs a map"),
    "columns is empty": (f"columns:{HERE}\nfeatures: {{}}", "columns: needs a mapping"),
    "unknown part": (
        whole(top=f"{HERE}colums:\n  a: 1"),
        "colums: unknown; allowed here: columns, features, label, labels, weight, split",
    ),
    "twice": (whole(f"{HERE}n: {{type: int}}"), "columns: 'n' stands twice"),
    "twice, one quoted": (whole(f'{HERE}"n": {{type: int}}'), "'n' stands twice"),
    "setting twice": (
        whole(f"a: {{type: int, {HERE}type: int}}"),
        "columns.a: 'type' stands twice",
    ),
    "name is a list": (whole(f"? {HERE}[a]\n  : {{}}"), "a name must be plain text"),
    "name with blanks": (whole(f'{HERE}" a": {{type: int}}'), "without the blanks"),
    "empty name": (whole(f'{HERE}"": {{type: int}}'), "cannot be found"),
    "half a character": (
        whole(f'{HERE}"\\ud800": {{type: int}}'),
        "half a character",
    ),
    "no type": (whole(f"a: {HERE}{{}}"), "columns.a: needs type"),
    "unknown type": (
        whole(f"a: {{type: {HERE}integer}}"),
        "columns.a.type: 'integer' is unknown; allowed: int, float, string",
    ),
    "type is a list": (whole(f"a: {{type: {HERE}[int]}}"), "needs a single value"),
    "unknown setting": (
        whole(f"a: {{type: int, {HERE}optional: yes}}"),
        "columns.a.optional: unknown; allowed here: type, missing, default",
    ),
    "missing is a word": (
        whole(f"a: {{type: int, missing: {HERE}NA}}"),
        "columns.a.missing: needs a list",
    ),
    "default bool for int": (
        whole(f"a: {{type: int, default: {HERE}true}}"),
        "columns.a.default: 'true' is not a whole number",
    ),
    "default 1.5 for int": (
        whole(f"a: {{type: int, default: {HERE}1.5}}"),
        "'1.5' is not a whole number",
    ),
    "default octal": (whole(f"a: {{type: int, default: {HERE}010}}"), "'010' is not"),
    "default sexagesimal": (
        whole(f"a: {{type: int, default: {HERE}1:30}}"),
        "'1:30' is not a whole number",
    ),
    "default is text with an int tag": (
        whole(f"a: {{type: int, default: {HERE}!!int word}}"),
        "'word' is not a whole number",
    ),
    "default beyond 64 bits": (
        whole(f"a: {{type: int, default: {HERE}9223372036854775808}}"),
        "does not fit in 64 bits",
    ),
    "default with 5000 digits": (
        whole(f"a: {{type: int, default: {HERE}{'9' * 5000}}}"),
        "'... is not a whole number",
    ),
    "default bool for float": (
        whole(f"a: {{type: float, default: {HERE}yes}}"),
        "'yes' is not a number",
    ),
    "default nan": (
        whole(f"a: {{type: float, default: {HERE}nan}}"),
        "'nan' is not a finite number",
    ),
    "default .inf": (
        whole(f"a: {{type: float, default: {HERE}.inf}}"),
        "'.inf' is not a number",
    ),
    "default 1e400": (
        whole(f"a: {{type: float, default: {HERE}1e400}}"),
        "'1e400' is not a finite number",
    ),
    "default beyond 32 bits": (
        whole(f"a: {{type: float, default: {HERE}1e39}}"),
        "default 1e+39 is not a valid float",
    ),
    "default empty": (
        whole(f'a: {{type: string, default: {HERE}""}}'),
        "empty text means that a value is missing",
    ),
    "default null": (
        whole(f"a: {{type: string, default: {HERE}null}}"),
        "leave `default` out",
    ),
    "label is a word": (whole(label=f"{HERE}y"), "label: needs a mapping"),
    "label of no column": (
        whole(label=f"{{column: {HERE}z}}"),
        "'z' is not under `columns`; there are: n, f, s, y, k",
    ),
    "label with a default": (
        whole("d: {type: int, default: 1}", label=f"{{column: {HERE}d}}"),
        "may not have a default",
    ),
    "string label without classes": (
        whole(label=f"{HERE}{{column: s}}"),
        "`classes` must list its labels",
    ),
    "classes on a float": (
        whole(label=f"{{column: y, classes: {HERE}[0, 1]}}"),
        "column y is a float",
    ),
    "one class": (
        whole(label=f"{{column: s, classes: {HERE}[a]}}"),
        "at least two different labels",
    ),
    "class twice": (
        whole(label=f"{{column: s, classes: [a, {HERE}a]}}"),
        "label.classes.1: 'a' stands twice",
    ),
    "class with a blank": (
        whole(label=f"{{column: s, classes: [a, {HERE}' b']}}"),
        "' b' cannot be met: labels are read without the blanks around them; write 'b'",
    ),
    "class that is a missing marker": (
        whole(
            "m: {type: string, missing: [NA]}",
            label=f"{{column: m, classes: [a, {HERE}NA]}}",
        ),
        "'NA' means that column m has no value",
    ),
    "empty class": (
        whole(label=f"{{column: s, classes: [a, {HERE}'']}}"),
        "'' means that column s has no value",
    ),
    "class is a list": (
        whole(label=f"{{column: s, classes: [a, {HERE}[b]]}}"),
        "label.classes.1: needs a single value",
    ),
    **{
        f"int class {text}": (
            whole(label=f"{{column: k, classes: [0, {HERE}{text}]}}"),
            f"{text!r} is not a whole number",
        )
        for text in ("yes", "1.5", "+1", "01", "-0", "0x1", "9223372036854775808")
    },
    "weight of no column": (whole(top=f"weight: {HERE}z"), "'z' is not under"),
    "weight is text": (whole(top=f"weight: {HERE}s"), "column s is not a number"),
    "weight is the label": (whole(top=f"weight: {HERE}y"), "cannot be the weight"),
    "fractions of 0.9": (
        whole(top=f"split: {{fractions: {HERE}{{train: 0.7, eval: 0.1, test: 0.1}}}}"),
        "split.fractions: fractions add up to 0.9 instead of 1",
    ),
    "fraction of 0": (
        whole(top=f"split: {{fractions: {HERE}{{train: 0.9, eval: 0.1, test: 0}}}}"),
        "fraction of test is 0.0, not in (0, 1]",
    ),
    "negative fraction": (
        whole(top=f"split: {{fractions: {HERE}{{train: 1.5, eval: 0.5, test: -1}}}}"),
        "fraction of train is 1.5",
    ),
    "fraction is text": (
        whole(top=f"split: {{fractions: {{train: {HERE}most, eval: 0, test: 0}}}}"),
        "split.fractions.train: 'most' is not a number",
    ),
    "fraction is missing": (
        whole(top=f"split: {{fractions: {HERE}{{train: 0.5, eval: 0.5}}}}"),
        "needs exactly train, eval, test",
    ),
    "another fraction": (
        whole(
            top="split: {fractions: "
            + HERE
            + "{train: 0.7, eval: 0.1, test: 0.1, b: 0.1}}"
        ),
        "needs exactly train, eval, test",
    ),
    "key of no column": (
        whole(top=f"split: {{key: [n, {HERE}z]}}"),
        "split.key.1: 'z' is not under `columns`",
    ),
    "no feature": (
        f"columns: {{a: {{type: int}}}}\nfeatures: {HERE}{{}}",
        "features: declares no feature",
    ),
    "bad feature name": (
        whole(features=f"{HERE}a/b: {{kind: numeric, column: f}}"),
        "letters, digits, _ . and - only",
    ),
    "no kind": (
        whole(features=f"f: {HERE}{{}}"),
        "features.f: needs kind; allowed: numeric, bucketized, vocabulary, hashed",
    ),
    "unknown kind": (
        whole(features=f"f: {{kind: {HERE}number}}"),
        "features.f.kind: 'number' is unknown; allowed: numeric, ",
    ),
    "setting of another kind": (
        whole(features=f"f: {{kind: numeric, {HERE}buckets: 5}}"),
        "features.f.buckets: unknown; allowed here: kind, column, scale, use",
    ),
    "feature of no column": (
        whole(features=f"z: {HERE}{{kind: numeric}}"),
        "needs `column`, since no column is called 'z'",
    ),
    "unknown column": (
        whole(features=f"z: {{kind: numeric, column: {HERE}zz}}"),
        "features.z.column: 'zz' is not under `columns`",
    ),
    "feature is the label": (
        whole(features=f"leak: {HERE}{{kind: numeric, column: y}}"),
        "y is the label; it cannot be a feature",
    ),
    "numeric of a string": (
        whole(features=f"s: {HERE}{{kind: numeric}}"),
        "column s is of type string; this kind of feature needs int or float",
    ),
    "vocabulary of a float": (
        whole(features=f"f: {HERE}{{kind: vocabulary}}"),
        "this kind of feature needs string or int",
    ),
    "same kind twice": (
        whole(features=f"again: {HERE}{{kind: numeric, column: n}}"),
        "column n already has a numeric feature: n",
    ),
    "unknown scale": (
        whole(features=f"f: {{kind: numeric, scale: {HERE}log10}}"),
        "allowed: none, zscore, minmax, log",
    ),
    "unknown use": (
        whole(features=f"f: {{kind: numeric, use: {HERE}all}}"),
        "'all' is unknown; allowed: wide, deep, both",
    ),
    "neither boundaries nor quantiles": (
        whole(features=f"f: {HERE}{{kind: bucketized}}"),
        "give either boundaries or quantiles",
    ),
    "falling boundaries": (
        whole(features=f"f: {{kind: bucketized, boundaries: {HERE}[2, 1]}}"),
        "rising list of numbers",
    ),
    "no boundaries": (
        whole(features=f"f: {{kind: bucketized, boundaries: {HERE}[]}}"),
        "rising list of numbers",
    ),
    "boundary is text": (
        whole(features=f"f: {{kind: bucketized, boundaries: [1, {HERE}two]}}"),
        "features.f.boundaries.1: 'two' is not a number",
    ),
    "one quantile": (
        whole(features=f"f: {{kind: bucketized, quantiles: {HERE}1}}"),
        "1 is not a whole number from 2 to 65536",
    ),
    "2^40 quantiles": (
        whole(features=f"f: {{kind: bucketized, quantiles: {HERE}1099511627776}}"),
        "from 2 to 65536",
    ),
    "top_k of 0": (
        whole(features=f"s: {{kind: vocabulary, top_k: {HERE}0}}"),
        "0 is not a whole number of at least 1",
    ),
    "embedding of 0": (
        whole(features=f"s: {{kind: vocabulary, embedding: {HERE}0}}"),
        "0 is not a whole number from 1 to 65536",
    ),
    "no oov bucket": (
        whole(features=f"s: {{kind: vocabulary, oov_buckets: {HERE}0}}"),
        "of at least 1",
    ),
    "2^40 oov buckets": (
        whole(features=f"s: {{kind: vocabulary, oov_buckets: {HERE}1099511627776}}"),
        "1099511627776 oov_buckets would need 24,576 GiB",
    ),
    "no buckets": (whole(features=f"s: {HERE}{{kind: hashed}}"), "needs buckets"),
    "one bucket": (
        whole(features=f"s: {{kind: hashed, buckets: {HERE}1}}"),
        "of at least 2",
    ),
    "2^40 buckets": (
        whole(features=f"s: {{kind: hashed, buckets: {HERE}1099511627776}}"),
        "1099511627776 buckets would need 24,576 GiB in training (weights, and the"
        " optimizer's two numbers for each); this machine has",
    ),
    "cross of one": (
        whole(features=f"c: {{kind: crossed, of: {HERE}[n], buckets: 9}}"),
        "needs at least two different features",
    ),
    "cross of an undeclared feature": (
        whole(
            features="s: {kind: vocabulary}\n"
            f"  c: {{kind: crossed, of: [s, {HERE}zz], buckets: 9}}"
        ),
        "features.c.of.1: 'zz' is not a feature declared above this one",
    ),
    "cross of itself": (
        whole(features=f"c: {{kind: crossed, of: [{HERE}c, n], buckets: 9}}"),
        "'c' is not a feature declared above this one",
    ),
    "cross of a number": (
        whole(features=f"c: {{kind: crossed, of: [{HERE}n, s], buckets: 9}}"),
        "n cannot be crossed",
    ),
    "tab": (f"columns:\n{HERE}\ta: {{type: int}}", "indent with blanks"),
    "syntax": (f"columns: {{a: 1\nb{HERE}: 2", "not valid YAML: while parsing a flow"),
    "undefined alias": (f"columns: {HERE}*a", "found undefined alias 'a'"),
    "anchor twice": (f"a: &x 1\nb: {HERE}&x 2", "duplicate anchor 'x'"),
    "two documents": (f"a: 1\n{HERE}---\nb: 1", "a single document"),
    "control character": (f"a: é{HERE}\0", "the character U+0000"),
    "itself as a list": (f"{HERE}&a [*a]", "needs a mapping"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_declaration_names_place_and_what_is_allowed(tmp_path, text, said):
    place, text = place_of_mark(text)
    message = error_of(tmp_path, text)
    assert message.startswith(f"features.yaml:{place}: ")
    assert said in message


def test_the_base_of_the_wrong_declarations_is_right(tmp_path):
    load(tmp_path, whole())


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "\ufeff"])
def test_empty_file(tmp_path, text):
    assert error_of(tmp_path, text) == "features.yaml is empty"


def test_not_utf8_names_the_place(tmp_path):
    text = "columns:\n  né: ".encode() + b"\xff"
    message = error_of(tmp_path, text)
    assert message.startswith("features.yaml:2:7: not UTF-8 text: ")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings(tmp_path, encoding):
    assert "not UTF-8 text" in error_of(tmp_path, whole().encode(encoding))


def test_directory_and_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"^cannot read .*: Is a directory$"):
        declaration.load(str(tmp_path))
    with pytest.raises(UserError, match=r"^cannot read .*: No such file or directory$"):
        declaration.load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "columns: " + "[" * 1000 + "]" * 1000,
        "[" * 100_000,
        "{a: " * 1000,
        "".join(" " * i + "-\n" for i in range(1000)),
    ],
    ids=["list", "open list", "mapping", "block"],
)
def test_nested_too_deep(tmp_path, text):
    assert error_of(tmp_path, text).startswith("features.yaml: not valid: it is nested")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&a {columns: *a, features: *a}", "columns.columns: unknown"),
        ("columns: &c {a: *c}\nfeatures: *c", "columns.a.a: unknown"),
        ("columns: &c {a: {type: *c}}\nfeatures: *c", "needs a single value"),
        (
            "columns: {a: {type: int, missing: &m [*m]}}\nfeatures: {}",
            "columns.a.missing.0: needs a single value",
        ),
    ],
)
def test_a_value_that_contains_itself(tmp_path, text, said):
    assert said in error_of(tmp_path, text)


def test_aliases_that_multiply(tmp_path):
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    assert "unknown" in error_of(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    "text", ['"\\Uffffffff": 1', "%YAML " + "9" * 5000 + ".1\n---\na: 1"]
)
def test_escapes_and_numbers_that_yaml_itself_fails_on(tmp_path, text):
    assert "not valid YAML" in error_of(tmp_path, text)
