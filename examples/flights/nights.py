"""Forty nights of `retrain` over the flights of 2013, with trouble.

    python examples/flights/nights.py nycflights13_flights.csv.gz work/nights

A file a day is delivered, and each night is a process of its own, as a scheduler starts
it. Some nights something goes wrong: a day is missing, a column is renamed, values are
shifted, the process is killed in one of its stages, two are started at once, a candidate
is worse, the disk is full. After each night it is checked that the right champion stands.
The table at the end is in TensorBoard too: tensorboard --logdir=WORK/job/retrain.

The full disk is a small file system in memory where this user may mount one; else it is a
limit on the size of files.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import prepare
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLUMNS = (
    *("sched_dep_time", "sched_arr_time", "carrier", "origin", "dest", "distance"),
    "late",
)
STAGES = ("preprocess", "window", "train", "evaluate", "export", "verify", "judge")
STAGES += ("publish",)
PUBLISHED, FAILED, BAD_DATA, LOCKED, NOT_BLESSED, NOTHING = 0, 2, 3, 4, 9, 10
DISK_MB = 400
KEPT = "job.kept"
_DAY = datetime.timedelta(days=1)


@dataclasses.dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes:
      code: Its exit code; below 0 it is the signal that killed it.
      outcome: Its last line, read as JSON; empty where there is none.
      seconds: Wall time.
      cpu: Processor time, children included.
      log: Standard error.
    """

    code: int
    outcome: dict
    seconds: float
    cpu: float
    log: str


class Job:
    """The job, its data, and how it is started.

    Args:
      work: Directory of everything.
      table: The flights, with `date`.
      flags: Further flags of each run.
    """

    def __init__(self, work: Path, table: pa.Table, flags: list[str]):
        self.work = work
        self.dir = work / "job"
        self.days = work / "days"
        self.days.mkdir(parents=True, exist_ok=True)
        self.dir.mkdir(exist_ok=True)
        self._table = table
        self._flags = flags

    def day(self, date: datetime.date) -> pa.Table:
        chosen = pc.equal(self._table["date"], date.isoformat())
        return self._table.filter(chosen).select(COLUMNS)

    def deliver(self, date: datetime.date, table: pa.Table | None = None) -> None:
        """Brings a day's file, whole at once."""
        path = self.days / f"{date}.csv"
        csv.write_csv(self.day(date) if table is None else table, f"{path}.part")
        os.replace(f"{path}.part", path)

    def command(self, name: str, *flags: str) -> list[str]:
        return [
            *(sys.executable, "-m", "pipeline", name),
            f"--flagfile={HERE / 'nightly.flags'}",
            f"--work_dir={self.dir}",
            *flags,
        ]

    def data_flags(self) -> list[str]:
        """Returns what the commands take that read days."""
        return [
            f"--features={HERE / 'nightly.yaml'}",
            f"--input={self.days}/{{date}}.csv",
            *self._flags,
        ]

    def start(self, date: datetime.date, *flags: str, limit: int | None = None):
        """Starts a night; `limit` is the most bytes that a file may have."""

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            self.command("retrain", f"--run_date={date}", *self.data_flags(), *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": _python_path()},
            preexec_fn=limited,
        )

    def champion(self) -> dict:
        path = self.dir / "serving/keras_wide_deep/champion.json"
        return json.loads(path.read_text()) if path.exists() else {}


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def finish(process: subprocess.Popen, kill_at: str | None = None) -> Ended:
    """Waits for a night; kills it by SIGKILL once a stage says that it begins."""
    began = time.monotonic()
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.append(process.stdout.read()))
    reader.start()
    log = []
    for line in process.stderr:
        log.append(line)
        if kill_at is not None and line.startswith(f"{kill_at}:"):
            os.kill(process.pid, signal.SIGKILL)
            kill_at = None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    last = printed[0].strip().splitlines()[-1:]
    return Ended(
        process.returncode,
        json.loads(last[0]) if last and last[0].startswith("{") else {},
        time.monotonic() - began,
        usage.ru_utime + usage.ru_stime,
        "".join(log),
    )


def run(job: Job, date: datetime.date, *flags: str, **how) -> Ended:
    kill_at = how.pop("kill_at", None)
    return finish(job.start(date, *flags, **how), kill_at)


Trouble = Callable[[Job, datetime.date], Iterator[tuple[Ended, set[int]]]]
"""What happens in a night: each process with the exit codes that are right."""

DONE = {PUBLISHED, NOT_BLESSED}


def ordinary(job, date):
    job.deliver(date)
    yield run(job, date), DONE


def missing_day(job, date):
    yield run(job, date), {BAD_DATA}
    job.deliver(date)
    yield run(job, date), DONE


def renamed_column(job, date):
    names = ["destination" if name == "dest" else name for name in COLUMNS]
    job.deliver(date, job.day(date).rename_columns(names))
    yield run(job, date), {BAD_DATA}
    job.deliver(date)
    yield run(job, date), DONE


def shifted_values(job, date):
    table = job.day(date)
    miles = pc.add(pc.multiply(table["distance"], 1.6), 500)
    place = table.schema.get_field_index("distance")
    job.deliver(date, table.set_column(place, "distance", miles))
    yield run(job, date), {BAD_DATA}
    job.deliver(date)
    yield run(job, date), DONE


def killed_in(stage: str) -> Trouble:
    def killed(job, date):
        job.deliver(date)
        yield run(job, date, kill_at=stage), {-signal.SIGKILL}
        yield run(job, date), DONE

    killed.__name__ = f"kill_-9_in_{stage}"
    return killed


def two_at_once(job, date):
    job.deliver(date)
    first = job.start(date)
    # The second comes as soon as the first has the lock.
    while not (job.dir / "retrain/lock.json").exists() and first.poll() is None:
        time.sleep(0.01)
    yield finish(job.start(date)), {LOCKED}
    yield finish(first), DONE


def worse_candidate(job, date):
    job.deliver(date)
    yield run(job, date, "--max_steps=1"), {NOT_BLESSED}


def full_disk(job, date):
    job.deliver(date)
    filler = job.dir / "filler"
    if os.path.ismount(job.dir):
        with contextlib.suppress(OSError), open(filler, "wb") as f:
            while True:
                f.write(bytes(1 << 16))
        os.truncate(filler, os.path.getsize(filler) - (200 << 10))
        yield run(job, date), {FAILED}
        filler.unlink()
    else:
        yield run(job, date, limit=100 << 10), {FAILED}
    yield run(job, date), DONE


def late_data(job, date):
    """An old day comes once more, with a tenth of its rows gone."""
    job.deliver(date)
    old = date - 12 * _DAY
    table = job.day(old)
    job.deliver(old, table.slice(table.num_rows // 10))
    ended = run(job, date)
    if ended.log.count("preprocess: 1 file(s)") != 2:
        raise SystemExit(f"late data of {old} was not read again:\n{ended.log}")
    yield ended, DONE


def same_date_twice(job, date):
    job.deliver(date)
    yield run(job, date), DONE
    yield run(job, date), {NOTHING}


def rolled_back(job, date):
    """In the morning the champion before is brought back; the night goes on from it."""
    before = job.champion()
    began = time.monotonic()
    subprocess.run(
        job.command("rollback", "--reason=complaints"),
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": _python_path()},
    )
    seconds = time.monotonic() - began
    now = job.champion()
    if not (now["of"] and now["of"] < before["version"] < now["version"]):
        raise SystemExit(f"rolled back from {before} to {now}")
    print(f"  rollback: {seconds:.2f} s as a command", flush=True)
    job.deliver(date)
    yield run(job, date), DONE


def troubles() -> dict[int, Trouble]:
    """Number of a night, from 1, to what happens in it; others are ordinary."""
    found = {3: missing_day, 6: renamed_column, 9: shifted_values}
    found |= {12 + n: killed_in(stage) for n, stage in enumerate(STAGES)}
    found |= {22: two_at_once, 25: worse_candidate, 28: full_disk}
    return {**found, 31: rolled_back, 34: late_data, 37: same_date_twice}


class Watcher:
    """Looks at the published versions all the time, as a server does.

    Args:
      directory: Where they are.
    """

    def __init__(self, directory: Path):
        self.looks = 0
        self.broken: list[str] = []
        self._directory = directory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        parts = ("saved_model.pb", "variables/variables.index", "manifest.json")
        while not self._stop.wait(0.01):
            there = self._directory.glob("[0-9]*")
            newest = max((int(path.name) for path in there), default=None)
            if newest is None:
                continue
            self.looks += 1
            for part in parts:
                if not (self._directory / str(newest) / part).exists():
                    self.broken.append(f"{newest}: no {part}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def night(job: Job, date: datetime.date, trouble: Trouble) -> list[Ended]:
    """Runs a night; raises SystemExit where something is not as it should be."""
    champion, found = job.champion(), []
    for ended, right in trouble(job, date):
        found.append(ended)
        if ended.code not in right:
            raise SystemExit(
                f"{date} {trouble.__name__}: exit code {ended.code} instead of"
                f" {sorted(right)}\n{ended.outcome}\n{ended.log[-3000:]}"
            )
        if trouble is rolled_back:
            continue
        now = job.champion()
        if ended.code == PUBLISHED:
            champion = now
            if now["run_date"] != date.isoformat():
                raise SystemExit(f"{date}: the champion is of {now['run_date']}")
        elif ended.code != -signal.SIGKILL and now != champion:
            raise SystemExit(f"{date}: the champion changed without a new one")
    return found


def line(number: int, date, name: str, found: list[Ended], champion: dict) -> str:
    """Returns a row of the table of nights."""
    last = found[-1].outcome
    codes = " ".join(str(ended.code) for ended in found)
    aucs = [
        f"{last.get(k, {}).get('auc', float('nan')):.4f}"
        for k in ("metrics", "champion_metrics")
    ]
    return (
        f"{number:>3} {date} {name:<22} {codes:<8} {last.get('outcome', '-'):<14}"
        f" {champion.get('run_date', '-'):<11} {aucs[0]:>7} {aucs[1]:>7}"
        f" {sum(e.seconds for e in found):>6.1f} {sum(e.cpu for e in found):>6.1f}"
    )


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """Mounts a small file system where that is allowed."""
    directory.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "nights", str(directory)]
    done = subprocess.run(mount, capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            kept = directory.with_name(KEPT)
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(directory, kept)
            subprocess.run(["umount", str(directory)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flights", help="nycflights13_flights.csv.gz")
    parser.add_argument("work", type=Path, help="a directory that is not there yet")
    parser.add_argument("--first", default="2013-03-05", help="date of the first night")
    parser.add_argument("--nights", type=int, default=40)
    parser.add_argument("--window_days", type=int, default=30)
    parser.add_argument(
        "--start_at",
        type=int,
        default=1,
        help="number of the first night, where those before it were run in WORK",
    )
    arguments = parser.parse_args()
    if arguments.work.exists() and arguments.start_at == 1:
        parser.error(f"{arguments.work} is there already; choose another")
    table = prepare.prepare(csv.read_csv(arguments.flights))
    flags = [f"--window_days={arguments.window_days}"]
    job = Job(arguments.work.resolve(), table, flags)
    first = datetime.date.fromisoformat(arguments.first)
    if arguments.start_at == 1:
        for n in range(1, arguments.window_days):
            job.deliver(first - n * _DAY)
    began, lines, runs = time.monotonic(), [], 0
    cpu = 0.0
    with small_disk(job.dir) as real_disk:
        print(f"full disk: {'a real one' if real_disk else 'a limit on files'}")
        if real_disk and arguments.start_at > 1:
            shutil.copytree(job.dir.with_name(KEPT), job.dir, dirs_exist_ok=True)
        watcher = Watcher(job.dir / "serving/keras_wide_deep")
        for number in range(arguments.start_at, arguments.nights + 1):
            date = first + (number - 1) * _DAY
            trouble = troubles().get(number, ordinary)
            found = night(job, date, trouble)
            runs += len(found)
            cpu += sum(ended.cpu for ended in found)
            lines.append(line(number, date, trouble.__name__, found, job.champion()))
            print(lines[-1], flush=True)
        watcher.close()
        status = job.command("status", f"--last={runs}", *job.data_flags())
        subprocess.run(
            status, check=True, env={**os.environ, "PYTHONPATH": _python_path()}
        )
    total = time.monotonic() - began
    head = "  # date       trouble                codes    outcome        champion of"
    print(f"\n{head}     auc  before      s   cpu")
    print("\n".join(lines))
    print(
        f"{len(lines)} nights, {runs} processes: {total:.0f} s, {cpu:.0f} s of"
        f" processor time; {watcher.looks:,} looks at the served versions,"
        f" {len(watcher.broken)} saw less than a whole model"
    )
    return 1 if watcher.broken else 0


if __name__ == "__main__":
    sys.exit(main())
