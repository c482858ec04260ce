"""Programs for TF 1.15 and 2.x, which know nothing of this project, under `exec`.

fixtures/results_2_15.json holds what they print under TensorFlow 2.15.1 itself:

    PYTHON_OF_TENSORFLOW_2_15 tests/existing/programs/multi_head.py /tmp/multi_head
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parents[1]
_EXPECTED = json.loads((_HERE / "fixtures" / "results_2_15.json").read_text("utf-8"))
_WITHOUT_FLAGS = ("keras_to_estimator", "multi_head")


def _run(program: str, model_dir: pathlib.Path) -> dict[str, object]:
    place = str(model_dir)
    argument = place if program in _WITHOUT_FLAGS else f"--model_dir={place}"
    script = _HERE / "programs" / f"{program}.py"
    unset = ("TF_USE_LEGACY_KERAS", "TF_CONFIG")
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "exec", str(script), argument],
        cwd=_ROOT,
        env={k: v for k, v in os.environ.items() if k not in unset},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted(_EXPECTED))
def test_program_gives_what_it_gives_on_2_15(program, tmp_path):
    expected = _EXPECTED[program]
    found = _run(program, tmp_path)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            assert found[name] == value
        else:
            assert found[name] == pytest.approx(value, abs=1e-4), name


def test_there_is_a_result_for_each_program():
    programs = {path.stem for path in (_HERE / "programs").glob("*.py")}
    assert programs == set(_EXPECTED)
    for program in programs:
        source = (_HERE / "programs" / f"{program}.py").read_text(encoding="utf-8")
        assert "pipeline" not in source
