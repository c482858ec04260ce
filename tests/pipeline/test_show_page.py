"""show --format=html and --rows: complete, self-contained and safe."""

from __future__ import annotations

import html.parser
import json
import re

import pytest

from pipeline import app
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import stage
from pipeline.types import ExitCode

EVIL = "<script>alert('x')</script>"
DECLARATION = f"""
split: {{by: column, column: which, values: {{train: [t], eval: [e], test: [x]}}}}
columns:
  n: {{type: int, min: 0}}
  f: {{type: float, default: 0}}
  "{EVIL}": {{type: string, default: none}}
  which: {{type: string}}
features:
  n: {{kind: numeric}}
  f: {{kind: numeric}}
  s: {{kind: vocabulary, column: "{EVIL}"}}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("show")
    (tmp / "features.yaml").write_text(DECLARATION, encoding="utf-8")
    rows = [f"{i},{i / 8},{EVIL if i % 4 else ''},{'tex'[i % 3]}" for i in range(60)]
    rows += ['-1,1,"&amp;""\'<img src=http://x onerror=y>",t', "5,1,z,other"]
    text = f"n,f,{EVIL},which\n" + "\n".join(rows) + "\n"
    (tmp / "rows.csv").write_text(text, encoding="utf-8")
    flags = DataFlags(
        str(tmp / "rows.csv"), str(tmp / "features.yaml"), None, 0.5, 64, ()
    )
    stage.run(str(tmp / "d"), stage.plan(flags), Console(-1))
    return tmp / "d"


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text.append(data)


def test_the_page(directory, tmp_path, capsys):
    output = tmp_path / "page.html"
    assert not app.main(["show", str(directory), "--format=html", f"--output={output}"])
    assert str(output) in capsys.readouterr().out
    page = output.read_text(encoding="utf-8")
    assert not app.main(["show", f"{directory}/", "--format=html"])
    assert directory.with_suffix(".html").read_text(encoding="utf-8") == page
    found = _Tags()
    found.feed(page)
    assert not {"script", "img", "link", "iframe", "a"} & set(found.tags)
    assert not {"src", "href", "onerror", "onload"} & set(found.attributes)
    assert "default-src 'none'" in page
    assert not re.search(r"url\(|@import|https?:", page.replace("http://x", ""))
    text = "".join(found.text)
    assert "Rows read 62 = written 60 + rejected 2" in text
    assert EVIL in text and "<img src=http://x onerror=y>" in text
    for name in ("n", "f", "which", "train", "eval", "test"):
        assert name in text
    assert found.tags.count("svg") >= 4 and found.tags.count("rect") >= 40


def test_rows(directory, capsys):
    assert not app.main(["show", str(directory), "--rows=2", "--split=eval"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {"n": 1, "f": 0.125, EVIL: EVIL, "which": "e"}
    assert len(rows) == 2
    assert not app.main(["show", str(directory), "--rows=1"])
    row = json.loads(capsys.readouterr().out)
    assert row == {"n": 0, "f": 0.0, EVIL: None, "which": "t"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output=x"], "--output is for --format=html"),
        (["--rows=1", "--split=dev"], "split"),
    ],
)
def test_mistakes(directory, capsys, flags, message):
    assert app.main(["show", str(directory), *flags]) == ExitCode.USER_ERROR
    assert message in capsys.readouterr().err
