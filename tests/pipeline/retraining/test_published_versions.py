"""Published versions: once each, whole at every moment, and back again."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading

import pytest

from export import versions
from pipeline import files
from pipeline.retraining import registry as registries
from pipeline.retraining.registry import CHAMPION_FILE, Published, Registry
from pipeline.types import UserError

PARTS = ("saved_model.pb", "variables/variables.index", versions.DECLARATION_FILE)


def export(root, name: str):
    """An exported version, as far as publishing looks at it."""
    directory = root / "exports" / name
    for part in PARTS:
        path = directory / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} {part}")
    return directory


def record(name: str) -> Published:
    return Published(
        version=0,
        of=None,
        model=f"model-{name}",
        export=f"export-{name}",
        request=f"request-{name}",
        run_date="2013-06-01",
        attempt=f"2013-06-01-{name}",
        work_dir="/work",
        verdict="blessed",
        reason=None,
        published="",
    )


def publish(registry: Registry, root, name: str) -> Published:
    return registry.publish(str(export(root, name)), record(name))


@pytest.fixture
def registry(tmp_path) -> Registry:
    return Registry(str(tmp_path / "serving" / "model"))


def content(registry: Registry, version: int) -> list[str]:
    return [
        open(os.path.join(registry.path(version), part), encoding="utf-8").read()
        for part in PARTS
    ]


def pointer(registry: Registry) -> Published:
    path = os.path.join(registry.directory, CHAMPION_FILE)
    return Published(**files.read_json(path))


def test_versions_rise_and_the_newest_is_the_champion(tmp_path, registry):
    assert registry.repair() is None
    one = publish(registry, tmp_path, "a")
    two = publish(registry, tmp_path, "b")
    assert one.version < two.version
    assert registry.champion() == two == pointer(registry)
    assert [p.model for p in registry.all()] == ["model-a", "model-b"]
    assert content(registry, two.version) == [f"b {part}" for part in PARTS]
    assert registry.prune(1) == [one.version]
    assert registry.all() == [two]


def test_an_attempt_is_published_once(tmp_path, registry):
    one = publish(registry, tmp_path, "a")
    assert publish(registry, tmp_path, "a") == one
    assert len(registry.all()) == 1


def test_clocks_that_go_back(tmp_path, registry, monkeypatch):
    one = publish(registry, tmp_path, "a")
    monkeypatch.setattr(versions.time, "time", lambda: 1000.0)
    assert publish(registry, tmp_path, "b").version == one.version + 1


def test_rollback_and_forth(tmp_path, registry):
    a, b, c = (publish(registry, tmp_path, name) for name in "abc")
    back, is_new = registry.rollback(None, "complaints")
    assert is_new
    assert (back.of, back.model, back.reason) == (b.version, b.model, "complaints")
    assert back.version > c.version
    assert content(registry, back.version) == content(registry, b.version)
    assert registry.champion() == back == pointer(registry)
    # The champion before a champion that was brought back is the one before it.
    again, _ = registry.rollback(None, None)
    assert (again.of, again.model) == (a.version, a.model)
    with pytest.raises(UserError, match="no champion before"):
        registry.rollback(None, None)
    forth, _ = registry.rollback(c.version, None)
    assert (forth.of, forth.model) == (c.version, c.model)
    same, is_new = registry.rollback(c.version, None)
    assert (same, is_new) == (forth, False)
    # A version that repeats one may be named as well.
    via, _ = registry.rollback(back.version, None)
    assert (via.of, via.model) == (b.version, b.model)


def test_rollback_to_what_is_not_there(tmp_path, registry):
    with pytest.raises(UserError, match="holds no versions"):
        registry.rollback(None, None)
    one = publish(registry, tmp_path, "a")
    with pytest.raises(
        UserError, match=f"--to=5 is not in .*; there are {one.version}"
    ):
        registry.rollback(5, None)
    with pytest.raises(UserError, match="no champion before"):
        registry.rollback(None, None)
    assert registry.all() == [one]


def test_a_kill_between_version_and_pointer(tmp_path, registry, monkeypatch):
    one = publish(registry, tmp_path, "a")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Registry, "_repair", lambda self: None)
    two = publish(registry, tmp_path, "b")
    monkeypatch.undo()
    assert pointer(registry) == one
    assert registry.champion() == two
    assert registry.repair() == two == pointer(registry)
    monkeypatch.setattr(registries.files, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        publish(registry, tmp_path, "c")
    monkeypatch.undo()
    assert registry.repair() == two
    assert len(registry.all()) == 2
    leftover = os.path.join(registry.directory, ".123.tmp-1")
    os.mkdir(leftover)
    registry.repair()
    assert not os.path.exists(leftover)


def test_a_version_of_somebody_else_is_left_alone(tmp_path, registry):
    publish(registry, tmp_path, "a")
    shutil.copytree(export(tmp_path, "b"), registry.path(2**40))
    with pytest.raises(UserError, match="was not published by retrain"):
        registry.champion()
    with pytest.raises(UserError, match="was not published by retrain"):
        publish(registry, tmp_path, "c")
    assert os.path.isdir(registry.path(2**40))


def test_two_jobs_with_one_directory(tmp_path, registry):
    """Distinct, whole versions, whoever comes first."""
    names = [f"job{n}" for n in range(8)]
    for name in names:
        export(tmp_path, name)
    threads = [
        threading.Thread(target=publish, args=(registry, tmp_path, name))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = registry.all()
    assert sorted(p.model for p in there) == sorted(f"model-{n}" for n in names)
    assert len({p.version for p in there}) == len(names)
    for one in there:
        name = one.model.removeprefix("model-")
        assert content(registry, one.version) == [f"{name} {part}" for part in PARTS]


def test_who_watches_sees_whole_versions(tmp_path, registry):
    for name in "abc":
        publish(registry, tmp_path, name)
    stop, seen, broken = threading.Event(), set(), []

    def watch():
        while not stop.is_set():
            newest = versions.versions(registry.directory)[-1]
            seen.add(newest)
            missing = [
                part
                for part in PARTS
                if not os.path.exists(os.path.join(registry.path(newest), part))
            ]
            # A watcher that had to wait looks at what is no longer the newest, nor kept.
            if missing and newest in versions.versions(registry.directory):
                broken.append((newest, missing))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(30):
            there = registry.all()
            registry.rollback(there[0 if number % 2 else -2].version, None)
            registry.prune(4)
    finally:
        stop.set()
        watcher.join()
    assert not broken
    assert len(seen) > 1


def test_where_files_cannot_be_linked_they_are_copied(tmp_path, registry, monkeypatch):
    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(registries.os, "link", refuse)
    one = publish(registry, tmp_path, "a")
    publish(registry, tmp_path, "b")
    back, _ = registry.rollback(None, None)
    assert content(registry, back.version) == content(registry, one.version)


def test_records_of_another_kind_are_refused(tmp_path, registry):
    one = publish(registry, tmp_path, "a")
    path = os.path.join(registry.path(one.version), registries.PUBLISHED_FILE)
    files.write_json(path, {**dataclasses.asdict(one), "more": 1})
    with pytest.raises(UserError, match=r"published\.json is not a published version"):
        registry.all()
