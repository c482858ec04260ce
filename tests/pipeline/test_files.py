"""Patterns, atomic writes, staged directories and locks; kills are real ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import files
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[2]


def contents(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def error_of(call, *arguments) -> UserError:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


@contextlib.contextmanager
def child(body: str, *arguments: str) -> Iterator[subprocess.Popen]:
    """Runs Python in a process of its own, up to where it calls ready().

    It then waits until its standard input is closed.
    """
    program = f"""
import os, sys
from pipeline import files
def ready():
    print("ready", flush=True)
    sys.stdin.read()
{body}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        line = process.stdout.readline()
        assert line == "ready\n", process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen) -> None:
    process.kill()
    assert process.wait() == -signal.SIGKILL


class TestExpandPatterns:
    @pytest.fixture(autouse=True)
    def _data(self, tmp_path, monkeypatch):
        for name in ("b.csv", "a.csv", "with blank.csv", "[1].csv", "sub/c.csv"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x\n")
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("value", "found"),
        [
            ("a.csv", ["a.csv"]),
            ("[ab].csv", ["a.csv", "b.csv"]),
            ("b.csv,a.csv", ["a.csv", "b.csv"]),
            (" a.csv , b.csv ", ["a.csv", "b.csv"]),
            ("a.csv,,", ["a.csv"]),
            ("with blank.csv", ["with blank.csv"]),
            ("with*", ["with blank.csv"]),
            ("[1].csv", ["[1].csv"]),
            ("sub/../a.csv", ["sub/../a.csv"]),
            ("**/c.csv", ["sub/c.csv"]),
        ],
    )
    def test_found(self, value, found):
        assert files.expand_patterns("input", value) == tuple(found)

    def test_a_file_named_in_two_ways_is_read_once(self, tmp_path):
        given = f"a.csv,./a.csv,a.csv,{tmp_path}/a.csv,?.csv,sub/../a.csv"
        found = files.expand_patterns("input", given)
        assert [os.path.basename(path) for path in found] == ["a.csv", "b.csv"]

    def test_home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir("/")
        assert files.expand_patterns("input", "~/a.csv") == (f"{tmp_path}/a.csv",)
        message = str(error_of(files.expand_patterns, "input", "~/none*.csv"))
        assert "'~/none*.csv'" in message

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            ("", "is empty"),
            (" ", "is empty"),
            (" , ", "is empty"),
            ("a.cvs", "nothing matches 'a.cvs' (looked in "),
            ("z*.csv", "nothing matches 'z*.csv'"),
            ("a.csv,z.csv,b.csv", "nothing matches 'z.csv'"),
            ("a.csv b.csv", "nothing matches 'a.csv b.csv'"),
            ("sub", "sub is a directory; give files, e.g. sub/*.csv"),
            ("sub/", "sub/ is a directory; give files, e.g. sub/*.csv"),
            ("a.csv,sub", "sub is a directory"),
            ("s*", "sub is a directory"),
            ("a.csv/b.csv", "nothing matches 'a.csv/b.csv'"),
            ("a\0b", "nothing matches"),
            ("x" * 5000, "nothing matches"),
        ],
    )
    def test_refused(self, value, said):
        message = str(error_of(files.expand_patterns, "eval_input", value))
        assert message.startswith("--eval_input")
        assert said in message

    def test_link_to_nothing(self, tmp_path):
        (tmp_path / "link.csv").symlink_to(tmp_path / "gone.csv")
        message = str(error_of(files.expand_patterns, "input", "link.csv"))
        assert message == "--input: link.csv is a link to a missing file"

    def test_link_to_a_file(self, tmp_path):
        (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
        assert files.expand_patterns("input", "link.csv") == ("link.csv",)

    def test_pipe_is_refused_without_opening_it(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        message = str(error_of(files.expand_patterns, "input", "p*.csv"))
        assert "pipe.csv is not a regular file" in message

    def test_unreadable(self, monkeypatch):
        # Whoever runs the tests may be root, who may read everything.
        monkeypatch.setattr(os, "access", lambda path, mode: path != "b.csv")
        message = str(error_of(files.expand_patterns, "input", "*.csv"))
        assert message == "--input: b.csv may not be read by this user"


class TestWriteAtomically:
    def test_text_and_bytes(self, tmp_path):
        path = tmp_path / "with blank.txt"
        files.write_atomically(str(path), "ä\r\n")
        assert path.read_bytes() == b"\xc3\xa4\r\n"
        files.write_atomically(str(path), b"\0")
        assert path.read_bytes() == b"\0"
        assert os.listdir(tmp_path) == ["with blank.txt"]

    @pytest.mark.parametrize("place", ["none/a", "file/a"])
    def test_no_such_place(self, tmp_path, place):
        (tmp_path / "file").write_text("x")
        path = str(tmp_path / place)
        message = str(error_of(files.write_atomically, path, "new"))
        assert message.startswith(f"cannot write {path}: ")
        assert contents(tmp_path) == {"file": "x"}

    def test_failure_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        path = tmp_path / "a"
        path.write_text("old")

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        message = str(error_of(files.write_atomically, str(path), "new"))
        assert message == f"cannot write {path}: No space left on device"
        assert contents(tmp_path) == {"a": "old"}

    def test_kill_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a"
        path.write_text("old")
        body = """
os.fsync = lambda handle: ready()
files.write_atomically(sys.argv[1], "new" * 100_000)
"""
        with child(body, str(path)) as process:
            kill(process)
        assert path.read_text() == "old"
        files.write_atomically(str(path), "next")
        assert path.read_text() == "next"


class TestJson:
    def test_round_trip(self, tmp_path):
        path = str(tmp_path / "a.json")
        value = {"b": [1, 0.1, None, "ä\ud800"], "a": {}}
        files.write_json(path, value)
        assert files.read_json(path) == value

    def test_nan_is_refused_before_the_file_is_touched(self, tmp_path):
        with pytest.raises(ValueError, match="not JSON compliant"):
            files.write_json(str(tmp_path / "a.json"), float("nan"))
        assert os.listdir(tmp_path) == []

    def test_canonical(self):
        assert files.canonical_json({"b": (1,), "a": "é"}) == '{"a":"\\u00e9","b":[1]}'
        assert files.digest_value({"a": 1, "b": 2}) == files.digest_value(
            {"b": 2, "a": 1}
        )

    def test_missing(self, tmp_path):
        message = str(error_of(files.read_json, str(tmp_path / "a.json")))
        assert message.endswith("a.json: No such file or directory")


def test_digest_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc" * (1 << 20))
    digest = hashlib.sha256(b"abc" * (1 << 20)).hexdigest()
    assert files.digest_file(str(path)) == digest


class TestStagedDirectory:
    @pytest.fixture
    def target(self, tmp_path) -> Path:
        return tmp_path / "parent dir" / "data set"

    @pytest.fixture
    def old(self, target) -> dict[str, str]:
        (target / "deep").mkdir(parents=True)
        (target / "a").write_text("old")
        (target / "deep" / "b").write_text("old")
        return contents(target)

    def write(self, target: Path, name: str = "a", text: str = "new") -> None:
        with files.staged_directory(str(target)) as aside:
            Path(aside, name).write_text(text)

    def alone(self, target: Path) -> bool:
        return os.listdir(target.parent) == [target.name]

    def test_new(self, target):
        self.write(target)
        assert contents(target) == {"a": "new"}
        assert self.alone(target)

    def test_nothing_is_there_before_the_end(self, target):
        with files.staged_directory(str(target)) as aside:
            assert not target.exists()
            assert os.path.basename(aside).startswith(".")
            assert os.path.dirname(aside) == str(target.parent)

    def test_old_is_replaced_as_a_whole(self, target, old):
        with files.staged_directory(str(target)) as aside:
            Path(aside, "c").write_text("new")
            assert contents(target) == old
        assert contents(target) == {"c": "new"}
        assert self.alone(target)

    @pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
    def test_exception_leaves_the_old_one(self, target, old, kind):
        with pytest.raises(kind), files.staged_directory(str(target)) as aside:
            Path(aside, "a").write_text("new")
            raise kind
        assert contents(target) == old
        assert self.alone(target)

    def test_exception_leaves_nothing_where_there_was_nothing(self, target):
        with pytest.raises(ValueError), files.staged_directory(str(target)):
            raise ValueError
        assert os.listdir(target.parent) == []

    def test_failed_rename_puts_the_old_one_back(self, target, old, monkeypatch):
        rename = os.rename

        def fails(source, destination):
            if ".tmp-" in source:
                raise OSError(28, "No space left on device")
            rename(source, destination)

        monkeypatch.setattr(os, "rename", fails)
        with pytest.raises(OSError, match="No space left"):
            self.write(target)
        assert contents(target) == old
        assert self.alone(target)

    def test_trailing_slash_and_relative_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.write(Path("new"))
        with files.staged_directory("new/") as aside:
            Path(aside, "b").write_text("2")
        assert contents(tmp_path) == {"new/b": "2"}
        assert os.listdir(tmp_path) == ["new"]

    def test_a_link_goes_on_leading_to_the_directory(self, tmp_path, target, old):
        link = tmp_path / "link"
        link.symlink_to(target)
        self.write(link)
        assert link.is_symlink()
        assert contents(target) == {"a": "new"}
        assert self.alone(target)
        assert sorted(os.listdir(tmp_path)) == ["link", target.parent.name]

    def test_a_file_is_not_replaced(self, target):
        target.parent.mkdir()
        target.write_text("mine")
        message = str(error_of(self.write, target))
        assert message.endswith(
            "data set is a file; a directory is to be written there"
        )
        assert target.read_text() == "mine"

    def test_below_a_file(self, target):
        target.parent.mkdir()
        target.write_text("mine")
        message = str(error_of(self.write, target / "x"))
        assert message.startswith(f"cannot write in {target}: ")

    def test_leftovers_are_swept_and_nothing_else(self, target, old):
        names = {
            ".data set.tmp-123": True,
            ".data set.old-123": True,
            ".data set.tmp-123.tmp-4": False,
            ".data set.tmp-mine": False,
            ".data setX.tmp-1": False,
            ".other.tmp-1": False,
            "data set.tmp-1": False,
        }
        for name in names:
            (target.parent / name / "deep").mkdir(parents=True)
        self.write(target)
        left = {name for name, swept in names.items() if not swept}
        assert set(os.listdir(target.parent)) == left | {target.name}

    def test_sweep_where_there_is_nothing(self, target):
        files.sweep_leftovers(str(target))
        assert not target.parent.exists()

    def test_kill_in_the_middle(self, target, old):
        body = """
with files.staged_directory(sys.argv[1]) as aside:
    open(os.path.join(aside, "half"), "w").close()
    ready()
"""
        with child(body, str(target)) as process:
            kill(process)
        assert contents(target) == old
        assert len(os.listdir(target.parent)) == 2
        self.write(target)
        assert contents(target) == {"a": "new"}
        assert self.alone(target)

    def test_kill_between_the_renames(self, target, old):
        body = """
rename = os.rename
def stops(source, destination):
    if ".tmp-" in source:
        ready()
    rename(source, destination)
os.rename = stops
with files.staged_directory(sys.argv[1]):
    pass
"""
        with child(body, str(target)) as process:
            kill(process)
        assert not target.exists()
        with pytest.raises(ValueError), files.staged_directory(str(target)):
            assert contents(target) == old
            raise ValueError
        assert contents(target) == old
        assert self.alone(target)

    def test_kill_before_the_old_one_is_removed(self, target, old):
        body = """
files.shutil.rmtree = lambda *a, **k: ready()
with files.staged_directory(sys.argv[1]) as aside:
    open(os.path.join(aside, "a"), "w").close()
"""
        with child(body, str(target)) as process:
            kill(process)
        assert contents(target) == {"a": ""}
        self.write(target, "b")
        assert contents(target) == {"b": "new"}
        assert self.alone(target)


class TestLocked:
    BODY = """
with files.locked(sys.argv[1]):
    ready()
"""

    def take(self, directory) -> None:
        with files.locked(str(directory)):
            pass

    def test_second_process_learns_who_has_it(self, tmp_path):
        with child(self.BODY, str(tmp_path / "a b")) as process:
            error = error_of(self.take, tmp_path / "a b")
        assert error.exit_code is ExitCode.LOCKED
        assert str(error).startswith(f"{tmp_path / 'a b'} is in use by process ")
        assert f"process {process.pid} on {socket.gethostname()} since 2" in str(error)

    def test_the_first_process_is_not_disturbed(self, tmp_path):
        with child(self.BODY, str(tmp_path / "a")) as process:
            error_of(self.take, tmp_path / "a")
            error_of(self.take, tmp_path / "a")
            assert process.communicate(timeout=30) == ("", "")
            assert process.returncode == 0
        self.take(tmp_path / "a")

    def test_lock_of_the_dead_is_free_at_once(self, tmp_path):
        with child(self.BODY, str(tmp_path / "a")) as process:
            error_of(self.take, tmp_path / "a")
            kill(process)
            self.take(tmp_path / "a")

    def test_other_directories_are_free(self, tmp_path):
        with child(self.BODY, str(tmp_path / "a")):
            self.take(tmp_path / "b")
            self.take(tmp_path)

    @pytest.mark.parametrize("name", ["a/", "x/../a", "link"])
    def test_other_names_of_the_directory_are_locked_too(self, tmp_path, name):
        (tmp_path / "a").mkdir()
        (tmp_path / "x").mkdir()
        (tmp_path / "link").symlink_to("a")
        with child(self.BODY, str(tmp_path / "a")):
            error_of(self.take, f"{tmp_path}/{name}")

    def test_an_exception_frees_it(self, tmp_path):
        with pytest.raises(ValueError), files.locked(str(tmp_path / "a")):
            raise ValueError
        self.take(tmp_path / "a")

    def test_the_directory_itself_is_not_made(self, tmp_path):
        self.take(tmp_path / "deep" / "a")
        assert os.listdir(tmp_path / "deep") == [".a.lock"]

    def test_place_below_a_file(self, tmp_path):
        (tmp_path / "file").write_text("x")
        error = error_of(self.take, tmp_path / "file" / "deep" / "a")
        assert error.exit_code is ExitCode.USER_ERROR
        assert str(error).startswith(f"cannot write in {tmp_path}/file/deep: ")

    def test_name_that_is_too_long(self, tmp_path):
        error = error_of(self.take, tmp_path / ("a" * 300))
        assert "File name too long" in str(error)

    def test_file_system_without_locks(self, tmp_path, monkeypatch):
        def none(handle, operation):
            raise OSError(37, "No locks available")

        monkeypatch.setattr(files.fcntl, "flock", none)
        message = str(error_of(self.take, tmp_path / "a"))
        assert message == f"cannot lock {tmp_path}/.a.lock: No locks available"


def test_find_below(tmp_path):
    for place in ("m", "b/m", "a/c/m", "a/c/d/m", ".hidden/m", "a/other"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "e" / "m").mkdir(parents=True)

    def found(depth):
        paths = files.find_below(str(tmp_path), "m", depth)
        return [os.path.relpath(path, tmp_path) for path in paths]

    assert found(0) == ["m"]
    assert found(1) == ["b/m", "m"]
    assert found(2) == ["a/c/m", "b/m", "m"]
