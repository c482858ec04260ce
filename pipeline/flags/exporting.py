"""Flags: What an exported version holds."""

from __future__ import annotations

import dataclasses

from absl import flags

FORMATS = ("litert", "litert_int8", "onnx")


@dataclasses.dataclass(frozen=True)
class ExportFlags:
    """What export writes beside the SavedModel of the model itself, as given.

    Attributes:
      forward_features: Columns that answers repeat, e.g. a key.
      formats: Further formats of the model, in `FORMATS`.
      embeddings: Whether there is a signature that answers the last hidden layer.
    """

    forward_features: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    embeddings: bool = False


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_list(
        "forward_features",
        [],
        "Columns that answers repeat, separated by commas, e.g. a key. One that the"
        " model does not read becomes part of a request.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "formats",
        [],
        "Further formats that export writes and compares, separated by commas:"
        f" {', '.join(FORMATS)} (see docs/export.md).",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "export_embeddings",
        False,
        "Add the signature embeddings: a row as the model's last hidden layer sees it.",
        flag_values=values,
    )
    flags.register_validator(
        "formats",
        lambda names: set(map(str.strip, names)) <= {*FORMATS, ""},
        f"must be of {', '.join(FORMATS)}",
        flag_values=values,
    )


def _names(given: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def read(values: flags.FlagValues) -> ExportFlags:
    return ExportFlags(
        _names(values.forward_features),
        _names(values.formats),
        values.export_embeddings,
    )
