"""The registry of models."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from model_fns import registry
from pipeline.types import (
    Column,
    ColumnType,
    Declaration,
    Label,
    Labels,
    Numeric,
    Split,
    Task,
    UserError,
)


def declaration(label: Label | None) -> Declaration:
    return Declaration(
        {"a": Column("a", ColumnType.INT), "y": Column("y", ColumnType.INT)},
        {"a": Numeric("a", "a")},
        Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
        label,
    )


@pytest.mark.parametrize("name", registry.MODELS)
def test_entries_are_whole(name):
    entry = registry.find(name)
    assert entry.name == name
    assert entry.summary
    assert "\n" not in entry.summary
    assert dataclasses.is_dataclass(entry.hparams)
    fields = {field.name for field in dataclasses.fields(entry.hparams)}
    assert set(entry.hparams.DECIDES_VARIABLES) <= fields
    parameters = list(inspect.signature(entry.builder()).parameters)
    assert len(parameters) == 4
    assert parameters[:2] == ["declaration", "constants"]


@pytest.mark.parametrize("name", ["", "wide", "WIDE_DEEP", "wide-deep"])
def test_unknown_model(name):
    with pytest.raises(UserError) as caught:
        registry.find(name)
    assert str(caught.value).startswith(f"--model={name} is unknown; ")
    assert f"there are: {', '.join(registry.MODELS)}" in str(caught.value)


def test_a_near_miss_gets_a_suggestion():
    with pytest.raises(UserError, match=r"did you mean wide_deep\? there are"):
        registry.find("wide_depe")


_LABELS = {
    Task.BINARY: Label("y", ("0", "1")),
    Task.MULTI_CLASS: Label("y", ("0", "1", "2")),
    Task.MULTI_LABEL: Label("y", ("0", "1", "2"), separator="|"),
    Task.REGRESSION: Label("y"),
    Task.MULTI_TASK: Labels({"a": Label("y"), "b": Label("a")}, {"a": 1, "b": 1}),
}


@pytest.mark.parametrize("name", registry.MODELS)
@pytest.mark.parametrize("task", Task)
def test_tasks_of_the_models(name, task):
    model = registry.find(name)
    if task in model.tasks or not model.tasks:
        registry.check_task(model, declaration(_LABELS[task]), "f.yaml")
    else:
        with pytest.raises(
            UserError, match=f"--model={name} does .*asks for {task.value}"
        ):
            registry.check_task(model, declaration(_LABELS[task]), "f.yaml")


def test_a_model_that_needs_no_label():
    registry.check_task(registry.find("kmeans"), declaration(None), "f.yaml")
    assert registry.find("kmeans").does == "clustering, without a label"


def test_no_label():
    with pytest.raises(UserError, match="f.yaml declares no label.*label: {column"):
        registry.check_task(registry.find("wide_deep"), declaration(None), "f.yaml")


def test_task_that_the_model_does_not_do():
    model = dataclasses.replace(registry.find("wide_deep"), tasks=(Task.REGRESSION,))
    with pytest.raises(UserError) as caught:
        registry.check_task(model, declaration(Label("y", ("0", "1"))), "f.yaml")
    assert str(caught.value) == (
        "--model=wide_deep does regression; the label in f.yaml asks for binary"
        " classification"
    )
