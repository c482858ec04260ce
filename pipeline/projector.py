"""Vocabulary terms as labels of embeddings, for TensorBoard's projector."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pipeline import files
from pipeline.compat import tf
from pipeline.model_dir import TrainedModel

_CONFIG_FILE = "projector_config.pbtxt"
_LABELS_DIRECTORY = "projector"
_TABLE = r"(?:weights|embedding_weights|table/embeddings)"


def _label(term: object) -> str:
    text = term.decode(errors="backslashreplace") if isinstance(term, bytes) else term
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    # An empty line would be left out, and all labels below would be those of others.
    return shown or "(empty)"


def _tables(model: TrainedModel, checkpoint: str) -> Iterator[tuple[str, str]]:
    """Yields the variable and the feature of each embedding with a vocabulary."""
    shapes = tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()
    for name, feature in model.declaration.features.items():
        terms = model.constants.vocabularies.get(name)
        if terms is None or getattr(feature, "embedding", None) is None:
            continue
        rows = len(terms) + feature.oov_buckets
        places = {name, feature.column, getattr(feature, "shared", None) or name}
        pattern = "|".join(map(re.escape, sorted(places)))
        table = re.compile(rf"/(?:{pattern})(?:(?:_shared)?_embedding)?/{_TABLE}")
        for variable, shape in sorted(shapes.items()):
            wide = len(shape) == 2 and shape[0] == rows and shape[1] > 1
            found = table.search(variable)
            if wide and found and found.end() == len(variable):
                yield variable, name


def write(model: TrainedModel, checkpoint: str) -> None:
    """Writes the projector's settings and labels into the model directory.

    Features that share a table have the labels of the first one.

    Args:
      model: A model that was trained.
      checkpoint: Its path prefix.
    """
    labelled = dict(reversed(list(_tables(model, checkpoint))))
    if not labelled:
        return
    directory = os.path.join(model.directory, _LABELS_DIRECTORY)
    os.makedirs(directory, exist_ok=True)
    entries = []
    for number, (variable, name) in enumerate(sorted(labelled.items())):
        feature = model.declaration.features[name]
        lines = [_label(term) for term in model.constants.vocabularies[name]]
        lines += [f"(out of vocabulary {n})" for n in range(feature.oov_buckets)]
        # A feature's name may be no file name.
        path = f"{_LABELS_DIRECTORY}/{number}.tsv"
        files.write_atomically(
            os.path.join(model.directory, path), "\n".join(lines) + "\n"
        )
        quoted = variable.replace("\\", "\\\\").replace('"', '\\"')
        entries.append(
            f'embeddings {{\n  tensor_name: "{quoted}"\n  metadata_path: "{path}"\n}}\n'
        )
    path = os.path.join(model.directory, _CONFIG_FILE)
    files.write_atomically(path, "".join(entries))
