"""Preprocess on Prism, Beam's portable engine: a job server of its own over gRPC.

`make prism` fetches and builds the engine; nothing is downloaded here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_VARIABLE = "PRISM"
_BUILT = ROOT / "work" / "prism" / "prism"
_SECONDS = 240
_FEATURES = """
columns: {n: {type: int}, x: {type: float, default: 0.5}, c: {type: string}}
features: {n: {kind: numeric}, x: {kind: numeric}, c: {kind: vocabulary}}
"""


def _prism() -> str | None:
    if _BUILT.exists():
        return str(_BUILT)
    return os.environ.get(_VARIABLE) or shutil.which("prism")


def _preprocess(directory: Path, name: str, *options: str) -> dict[str, bytes]:
    command = [sys.executable, "-m", "pipeline", "preprocess"]
    command += [
        f"--input={directory}/*.csv",
        f"--features={directory}/features.yaml",
        f"--dataset_dir={directory}/{name}",
        *options,
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return {p.name: p.read_bytes() for p in (directory / name).glob("*.tfrecord")}


@pytest.mark.slow
@pytest.mark.skipif(
    _prism() is None, reason=f"no Prism: run `make prism` or set {_VARIABLE}=PATH"
)
def test_prism_writes_the_records_that_the_in_memory_runner_writes(tmp_path):
    (tmp_path / "features.yaml").write_text(_FEATURES)
    for number in range(3):
        rows = [
            f"{i},{'' if i % 5 == 0 else i / 4},w{i % 11}"
            for i in range(number * 2000, number * 2000 + 1500)
        ]
        (tmp_path / f"{number}.csv").write_text("n,x,c\n" + "\n".join(rows) + "\n")
    memory = _preprocess(tmp_path, "memory")
    engine = _preprocess(
        tmp_path,
        "engine",
        "--beam_option=--runner=PrismRunner",
        f"--beam_option=--prism_location={_prism()}",
        "--beam_stall_seconds=120",
    )
    assert len(memory) == 9
    assert engine == memory
