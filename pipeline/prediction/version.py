"""An exported version as batch prediction uses it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from export.versions import DECLARATION_FILE
from pipeline import declaration as declarations
from pipeline import manifest as manifests
from pipeline.flags.predicting import SIGNATURE
from pipeline.manifest import Manifest
from pipeline.prediction import answers
from pipeline.preprocess import example_encoder
from pipeline.types import Column, Declaration, UserError

# Reading gives some 100,000 narrow rows at a time; one-hot features of so many
# would fill the memory.
_BATCH = 4096


@dataclasses.dataclass(frozen=True)
class Version:
    """What is known of a version before it is loaded.

    Attributes:
      directory: Where it is.
      declaration: Of its model.
      forwarded: Columns that its answers repeat.
      manifest: None where it was written by something else.
      signature: The signature that answers.
    """

    directory: str
    declaration: Declaration
    forwarded: tuple[Column, ...]
    manifest: Manifest | None
    signature: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """What a row must have."""
        read = (*self.declaration.input_columns, *self.forwarded)
        return tuple({column.name: column for column in read}.values())


def read(directory: str, signature: str = SIGNATURE) -> Version:
    """Reads what stands beside the model.

    Raises:
      UserError: A file is missing or damaged.
    """
    declaration = declarations.load(os.path.join(directory, DECLARATION_FILE))
    manifest = manifests.read(directory)
    names = manifest.configuration.get("forward_features", ()) if manifest else ()
    forwarded = tuple(declaration.columns[name] for name in names)
    return Version(directory, declaration, forwarded, manifest, signature)


def load(directory: str) -> Mapping[str, Any]:
    """Returns the signatures.

    Raises:
      UserError: The version cannot be loaded.
    """
    from pipeline.compat import tf

    try:
        return tf.saved_model.load(directory).signatures
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"{directory} cannot be loaded ({error}); run export again, or take"
            " another --version"
        ) from error


class Predictor:
    """A loaded version; loading takes a second, so one serves a whole worker."""

    def __init__(self, version: Version):
        self._version = version
        signatures = load(version.directory)
        name = version.signature
        if name not in signatures:
            raise UserError(
                f"--signature={name}: {version.directory} has"
                f" {', '.join(sorted(signatures))}"
            )
        self._serve = signatures[name]
        inputs = list(self._serve.structured_input_signature[1])
        if inputs != ["examples"]:
            raise UserError(
                f"--signature={name} takes {', '.join(inputs)}; predict needs one that"
                " takes examples, e.g. serving_default"
            )

    def predict(self, table: pa.RecordBatch) -> list[answers.Columns]:
        """Returns the predictions of checked rows, in batches, in their order."""
        serialized = example_encoder.encode(table)
        return [
            self._answer(serialized[start : start + _BATCH])
            for start in range(0, len(serialized), _BATCH)
        ]

    def _answer(self, serialized: Sequence[bytes]) -> answers.Columns:
        from pipeline.compat import tf

        outputs = {
            name: value.numpy()
            for name, value in self._serve(examples=tf.constant(serialized)).items()
        }
        forwarded = {
            ("forwarded", column.name): answers.array(outputs.pop(column.name))
            for column in self._version.forwarded
            if column.name in outputs
        }
        rows = len(serialized)
        for name, value in outputs.items():
            if value.shape[:1] != (rows,):
                raise UserError(
                    f"the model's output {name} has shape {list(value.shape)} for"
                    f" {rows} rows; predict needs a value for each"
                )
        return {
            **forwarded,
            **answers.of_outputs(outputs, self._version.declaration),
        }
