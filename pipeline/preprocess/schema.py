"""The declaration as a TensorFlow Metadata schema, the ecosystem's form."""

from __future__ import annotations

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.types import ColumnType, Declaration

_TYPES = {
    ColumnType.INT: schema_pb2.INT,
    ColumnType.FLOAT: schema_pb2.FLOAT,
    ColumnType.STRING: schema_pb2.BYTES,
}


def to_text(declaration: Declaration) -> str:
    """Returns the schema as protobuf text (`schema.pbtxt`).

    Each column has one value in the rows that have it; required columns are in all
    rows; a label of text has its classes as the domain.
    """
    schema = schema_pb2.Schema()
    label = declaration.label
    for column in declaration.columns.values():
        feature = schema.feature.add(name=column.name, type=_TYPES[column.type])
        feature.value_count.min = feature.value_count.max = 1
        feature.presence.min_count = 1
        if column.required:
            feature.presence.min_fraction = 1.0
        is_label = label is not None and label.column == column.name
        if is_label and label.classes and column.type is ColumnType.STRING:
            feature.string_domain.value.extend(label.classes)
        elif is_label and label.classes:
            feature.int_domain.min = min(map(int, label.classes))
            feature.int_domain.max = max(map(int, label.classes))
            feature.int_domain.is_categorical = True
    return text_format.MessageToString(schema)
