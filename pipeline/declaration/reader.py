"""Reads and checks a feature declaration."""

from __future__ import annotations

from pipeline.declaration import columns as columns_
from pipeline.declaration import features as features_
from pipeline.declaration import labels as labels_
from pipeline.declaration import nodes
from pipeline.declaration import split as split_
from pipeline.declaration.columns import known_column
from pipeline.declaration.split import DEFAULT_FRACTIONS
from pipeline.types import (
    AnyLabel,
    AnySplit,
    ColumnType,
    Declaration,
    Split,
    label_of,
)


def load(path: str) -> Declaration:
    """Reads and checks a feature declaration.

    Raises:
      UserError: Naming file, line, column, the place and what is allowed.
    """
    root = nodes.load(path)
    fields = root.fields(
        ["columns", "features"], ["label", "labels", "weight", "split"]
    )
    columns = {
        name: columns_.read(name, node) for name, node in fields["columns"].items()
    }
    label: AnyLabel | None = None
    if "labels" in fields:
        if "label" in fields:
            fields["labels"].fail_name("give either `label` or `labels`")
        label = labels_.read_several(fields["labels"], columns)
    elif "label" in fields:
        label = labels_.read_one(fields["label"], columns)
    weight = None
    if "weight" in fields:
        column = known_column(fields["weight"], columns)
        if column.type is ColumnType.STRING:
            fields["weight"].fail(f"column {column.name} is not a number")
        if label_of(label, column.name):
            fields["weight"].fail("the label cannot be the weight as well")
        weight = column.name
    split: AnySplit = Split(DEFAULT_FRACTIONS)
    if "split" in fields:
        split = split_.read(fields["split"], columns)
    features = features_.read(fields["features"], columns, label)
    return Declaration(columns, features, split, label, weight)
