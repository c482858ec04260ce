"""The monitor command as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def start(work_dir: Path, stderr: int = subprocess.DEVNULL) -> subprocess.Popen:
    """Starts monitor; the first line of its standard output has the address."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", "monitor", f"--work_dir={work_dir}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
