"""The models command: the registry, with what each hyper-parameter means."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from model_fns import hparams, hparams_help, registry
from model_fns.registry import Model
from pipeline.types import UserError

_WIDTH = 88


def _settings(model: Model) -> Iterator[str]:
    for setting in hparams_help.settings(model.hparams):
        head = f"{setting.name} ({setting.type}; {setting.default})"
        yield from textwrap.wrap(
            f"{head}: {setting.meaning}",
            _WIDTH,
            initial_indent="    ",
            subsequent_indent="        ",
        )


def _describe(model: Model) -> Iterator[str]:
    yield f"{model.name}: {model.summary}"
    yield from textwrap.wrap(
        f"does {model.does}", _WIDTH, initial_indent="  ", subsequent_indent="    "
    )
    if model.hparams is hparams.Free:
        yield "  --hparams: the names that it knows itself"
        return
    yield "  --hparams (type; default):"
    yield from _settings(model)


def describe(names: Sequence[str]) -> Iterator[str]:
    """Yields lines about the model of that name, or about all where there is none.

    Raises:
      UserError: There is no such model, or there are several names.
    """
    if len(names) > 1:
        raise UserError("models takes the name of one model, or none for all of them")
    if names:
        yield from _describe(registry.find(names[0], "models "))
        return
    for model in registry.MODELS.values():
        yield from _describe(model)
        yield ""
    yield "Choose one with --model=NAME, its settings with --hparams=name=value,..."
