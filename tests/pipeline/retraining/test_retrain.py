"""Nights of `retrain`, from the files of days to the champion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import helpers_nights
import pytest
from helpers_nights import champion, date, deliver, night, start

from export import versions
from pipeline import app
from pipeline.retraining import lineage
from pipeline.retraining.registry import Registry
from pipeline.types import ExitCode

STAGES = ("preprocess", "window", "train", "evaluate", "export", "verify", "judge")
STAGES += ("publish",)


def command(name: str, root, capsys, *more: str) -> tuple[int, str, str]:
    code = app.main([name, f"--work_dir={root}/work", "--model=keras_wide_deep", *more])
    said = capsys.readouterr()
    return int(code), said.out, said.err


def test_what_is_said_before_anything_is_done(tmp_path, capsys):
    deliver(tmp_path, 0)
    for changes, more, part in (
        ({"input": "days.csv"}, [], "--input needs {date}"),
        ({"features": ""}, [], "--features"),
        ({"bless_metric": "rmse"}, [], "'rmse' is no metric"),
        ({"window_days": 3}, [], "leaves no day to learn from"),
        ({}, ["--dataset_dir=x"], "--dataset_dir has no effect on retrain"),
        ({}, ["--force_bless"], "--force_bless needs --reason"),
        ({}, ["--skip_days=1.6.2013"], "--skip_days: '1.6.2013' is no date"),
        ({}, ["--gates=drift=maybe"], "--gates"),
        ({"input_fn": "direct"}, [], "--input_fn"),
    ):
        given = helpers_nights.flags(tmp_path, run_date=date(0), **changes)
        assert app.main(["retrain", *given, *more]) == ExitCode.USER_ERROR, part
        assert part in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_missing_days_and_status(tmp_path, capsys):
    for number in (0, 2, 5):
        deliver(tmp_path, number)
    code, outcome = night(tmp_path, capsys, 5)
    assert code == ExitCode.BAD_DATA
    assert outcome["outcome"] == "bad_data"
    assert "2013-06-02 is missing" in outcome["message"]
    assert "so are 2013-06-04, 2013-06-05" in outcome["message"]
    assert outcome["champion"] is None
    given = helpers_nights.flags(tmp_path, run_date=date(5), verbosity=0)
    known = ("work_dir", "model", "input", "features", "run_date", "window_days")
    chosen = [f for f in given if f.startswith(tuple(f"--{n}=" for n in known))]
    assert app.main(["status", *chosen, "--test_days=2"]) == 0
    said = capsys.readouterr().out
    assert "champion:   none" in said
    assert "lock:       free" in said
    assert "2013-06-06 bad_data" in said
    assert "the day 2013-06-02 is missing" in said


def test_another_run_is_at_work(tmp_path, capsys):
    from pipeline.console import Console
    from pipeline.retraining import lock

    deliver(tmp_path, 0)
    path = tmp_path / "work/retrain/lock.json"
    path.parent.mkdir(parents=True)
    with lock.held(str(path), 300, Console(-1)):
        code, outcome = night(tmp_path, capsys, 5)
    assert (code, outcome["outcome"]) == (ExitCode.LOCKED, "locked")
    assert f"process {os.getpid()}" in outcome["message"]


def test_status_of_nothing(tmp_path, capsys):
    code, out, _ = command("status", tmp_path, capsys)
    assert code == 0
    assert "champion:   none" in out
    code, _, err = command("rollback", tmp_path, capsys)
    assert (code, "holds no versions" in err) == (2, True)
    code, _, err = command("lineage", tmp_path, capsys, "7")
    assert (code, "no store of lineage" in err) == (2, True)
    assert not (tmp_path / "work").exists()


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """Days 0 to 9 and a champion of day 5; tests go on from there, in order."""
    root = tmp_path_factory.mktemp("week")
    for number in range(10):
        deliver(root, number)
    process = start(root, 5)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["outcome"] == "published"
    return root


def runs(root) -> list[lineage.Run]:
    return lineage.Store(str(root / "work/retrain/lineage.sqlite")).runs(99)


@pytest.mark.slow
class TestAWeek:
    """One job, night after night."""

    def test_the_first_champion(self, week):
        first = champion(week)
        assert (first["run_date"], first["verdict"]) == (date(5), "blessed")
        place = week / "work/serving/keras_wide_deep" / str(first["version"])
        assert (place / "saved_model.pb").exists()
        path = week / "work/retrain/runs" / first["attempt"] / "verdict.json"
        verdict = json.loads(path.read_text())
        names = [rule["name"] for rule in verdict["rules"]]
        assert "first: better than a constant" in names
        assert verdict["judged_on"] == [date(4), date(5)]
        assert verdict["rows"] == 120
        assert verdict["metrics"]["candidate"]["auc"] > 0.6

    def test_the_same_date_twice(self, week, capsys):
        before = champion(week)
        code, outcome = night(week, capsys, 5)
        assert code == ExitCode.NOTHING_TO_DO
        assert "was done before" in outcome["message"]
        assert champion(week) == before
        assert len(runs(week)) == 1

    def test_the_next_night_reads_one_day(self, week, capsys):
        before = champion(week)
        code, outcome = night(week, capsys, 6, "--verbosity=0")
        assert code == 0, outcome
        assert outcome["champion_metrics"]["auc"] > 0.5
        assert champion(week)["version"] > before["version"]
        run = runs(week)[-1]
        assert (run.outcome, run.champion) == ("published", before["version"])
        assert run.verdict["advantage"]["low"] <= run.verdict["advantage"]["high"]
        days = sorted(p.name for p in (week / "work/retrain/days").glob("*-0?"))
        assert days == [date(n) for n in range(7)]

    def test_a_worse_candidate(self, week, capsys):
        before = champion(week)
        worse = {"max_steps": 1, "eval_steps": 1, "bless_thresholds": "auc>=0.999"}
        code, outcome = night(week, capsys, 7, **worse)
        assert (code, outcome["outcome"]) == (ExitCode.NOT_BLESSED, "not_blessed")
        assert "wanted auc>=0.999" in outcome["message"]
        assert champion(week) == before
        code, outcome = night(week, capsys, 7, **worse)
        assert code == ExitCode.NOTHING_TO_DO
        # The same candidate all the same, and why.
        forced = ["--force_bless", "--reason=the old one is broken"]
        code, outcome = night(week, capsys, 7, *forced, **worse)
        assert code == 0
        assert champion(week)["reason"] == "the old one is broken"
        assert champion(week)["verdict"] == "not_blessed"
        assert "the old one is broken" in outcome["message"]

    def test_rollback(self, week, capsys):
        before = champion(week)
        began = time.monotonic()
        code, out, _ = command("rollback", week, capsys, "--reason=complaints")
        assert code == 0
        assert time.monotonic() - began < 1
        now = champion(week)
        assert (now["run_date"], now["reason"]) == (date(6), "complaints")
        assert now["version"] > before["version"] > now["of"]
        code, out, _ = command("rollback", week, capsys, f"--to={now['version']}")
        assert (code, "nothing to do" in out) == (ExitCode.NOTHING_TO_DO, True)
        code, out, _ = command("status", week, capsys)
        assert f"repeats version {now['of']}" in out
        assert "reason: complaints" in out

    def test_a_warm_start_from_the_champion(self, week, capsys):
        grown = [*helpers_nights.rows(8), *[[date(8), "Hof", 30, 1]] * 5]
        deliver(week, 8, grown)
        before = champion(week)
        code, outcome = night(week, capsys, 9, start_from="champion")
        assert code == 0, outcome
        store = lineage.Store(str(week / "work/retrain/lineage.sqlite"))
        model = store.model(runs(week)[-1].model)
        assert model.warm_start == before["model"]

    def test_lineage(self, week, capsys):
        version = str(champion(week)["version"])
        code, out, _ = command("lineage", week, capsys, version)
        assert code == 0
        for number in range(4, 10):
            assert f"  {date(number)} " in out
        assert f"{date(9)}.csv" in out
        assert "--start_from=champion" in out
        assert "weights began with those of model" in out
        target = week / "lineage.json"
        code, _, _ = command("lineage", week, capsys, version, f"--output={target}")
        value = json.loads(target.read_text())
        assert value["publication"]["version"] == int(version)
        # Also of a rollback, which does not write the store itself.
        older = min(versions.versions(str(week / "work/serving/keras_wide_deep")))
        code, out, _ = command("lineage", week, capsys, str(older))
        assert (code, f"version {older} in" in out) == (0, True)

    def test_curves_and_the_table(self, week):
        from pipeline.compat import tf

        found = {"candidate": {}, "champion": {}, "nights": {}}
        for who in found:
            for path in (week / "work/retrain/tensorboard" / who).iterdir():
                for event in tf.compat.v1.train.summary_iterator(str(path)):
                    for value in event.summary.value:
                        found[who].setdefault(value.tag, []).append((event.step, value))
        steps = [step for step, _ in found["candidate"]["test_days/auc"]]
        assert len(set(steps)) == 4
        _, table = max(found["nights"]["nights"], key=lambda point: point[0])
        text = table.tensor.string_val[0].decode()
        assert text.count("\n| 2013-06-") == len(runs(week))


def killed(root, number: int, stage: str, **changes) -> None:
    """Starts a night and kills it once a stage says that it begins."""
    process = start(root, number, **changes)
    for line in process.stderr:
        if line.startswith(f"{stage}:"):
            os.kill(process.pid, signal.SIGKILL)
            break
    process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, stage


@pytest.mark.slow
def test_kills_in_every_stage_end_in_the_same_champion(tmp_path, capsys):
    """One night, killed again and again a stage later, against an undisturbed one."""
    disturbed, quiet = tmp_path / "disturbed", tmp_path / "quiet"
    for root in (disturbed, quiet):
        for number in range(6):
            deliver(root, number)
    assert night(quiet, capsys, 5)[0] == 0
    for stage in STAGES:
        killed(disturbed, 5, stage)
        serving = disturbed / "work/serving/keras_wide_deep"
        for version in versions.versions(str(serving)):
            assert (serving / str(version) / "assets.extra/published.json").exists()
    code, outcome = night(disturbed, capsys, 5)
    assert code == 0, outcome
    assert champion(disturbed)["model"] == champion(quiet)["model"]
    assert len(versions.versions(str(serving))) == 1
    assert night(disturbed, capsys, 5)[0] == ExitCode.NOTHING_TO_DO


@pytest.mark.slow
def test_sigterm_lets_go_of_the_lock(week):
    deliver(week, 11)
    deliver(week, 10)
    process = start(week, 11)
    for line in process.stderr:
        if line.startswith("window:"):
            process.terminate()
            break
    out, _ = process.communicate(timeout=600)
    assert process.returncode == ExitCode.PREEMPTED
    outcome = json.loads(out.splitlines()[-1])
    assert (outcome["outcome"], outcome["exit_code"]) == ("failed", 143)
    assert not (week / "work/retrain/lock.json").exists()
    assert runs(week)[-1].exit_code == 143


@pytest.mark.slow
def test_two_at_once(week, capsys):
    deliver(week, 10)
    lock = week / "work/retrain/lock.json"
    first = start(week, 10)
    while not lock.exists() and first.poll() is None:
        time.sleep(0.01)
    second = start(week, 10)
    out, _ = second.communicate(timeout=600)
    assert second.returncode == ExitCode.LOCKED
    outcome = json.loads(out.splitlines()[-1])
    assert outcome["outcome"] == "locked"
    assert f"process {first.pid} of" in outcome["message"]
    _, err = first.communicate(timeout=600)
    assert first.returncode in (0, ExitCode.NOT_BLESSED), err
    assert not lock.exists()


SERVER = """
import sys
from pipeline import environment
environment.load_tensorflow(0)
from pipeline.serving.store import Store
store = Store(sys.argv[1])
seen = [store.current.number]
print(*seen, flush=True)
while len(seen) < 5 and not store.failed:
    store.refresh()
    if store.current.number != seen[-1]:
        seen.append(store.current.number)
        print(seen[-1], flush=True)
print(store.failed, flush=True)
"""


def go_back_and_forth(serving: str) -> None:
    """A real server's store takes each champion, while old versions go."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, serving],
        env=helpers_nights.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    registry = Registry(serving)
    champion = registry.champion()
    assert server.stdout.readline() == f"{champion.version}\n", server.stderr.read()
    for _ in range(4):
        others = [one for one in registry.all() if one.origin != champion.origin]
        champion, is_new = registry.rollback(others[-1].version, None)
        assert is_new
        registry.prune(3)
        assert server.stdout.readline() == f"{champion.version}\n", server.stderr.read()
    out, _ = server.communicate(timeout=600)
    assert out.strip() == "{}"


@pytest.mark.slow
def test_a_server_that_watches_never_misses_a_model(week):
    go_back_and_forth(str(week / "work/serving/keras_wide_deep"))
