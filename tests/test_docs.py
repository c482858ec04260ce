"""The documentation: its commands run, its links lead somewhere, its YAML loads."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import declaration
from pipeline.declaration import features

ROOT = Path(__file__).parents[1]
# In the order in which a reader works through them: a page may build on those before.
PAGES = ("README.md", "docs/commands.md", "docs/data.md", "docs/checks.md")
PAGES += ("docs/models.md", "docs/training.md", "docs/export.md", "docs/features.md")
PAGES += ("docs/input_functions.md", "docs/compat.md", "docs/runners.md")
PAGES += (
    "docs/serving.md",
    "docs/predict.md",
    "docs/existing.md",
    "docs/custom_models.md",
    "docs/distribution.md",
)
PAGES += ("docs/retraining.md",)
PAGES += ("docs/monitoring.md",)
_COMMAND = re.compile(r"^    (?:\.venv/bin/)?python -m pipeline (?!COMMAND)(.+)$", re.M)


def _commands() -> list[str]:
    return [
        command
        for page in PAGES
        for command in _COMMAND.findall((ROOT / page).read_text(encoding="utf-8"))
    ]


def test_no_page_is_left_out():
    found = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert found | {"README.md"} == set(PAGES)


@pytest.mark.parametrize("page", [*PAGES, "BUILD_NOTES.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target


def test_the_declaration_in_the_docs_loads(tmp_path):
    (block,) = re.findall(
        r"```yaml\n(.+?)```", (ROOT / "docs/features.md").read_text(), re.S
    )
    path = tmp_path / "features.yaml"
    path.write_text(block, encoding="utf-8")
    kinds = {f.KIND for f in declaration.load(str(path)).features.values()}
    text = (ROOT / "docs/features.md").read_text()
    _, _, table = text.partition("| kind | settings |")
    table = table.partition("\n\n")[0]
    assert kinds == set(re.findall(r"^\| `(\w+)` \| ", table, re.M))
    assert kinds == set(features.KINDS)


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = _commands()
    assert len(commands) >= 10
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline", *shlex.split(command)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
        assert done.stdout.strip(), command
