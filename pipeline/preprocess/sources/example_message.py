"""tf.train.Example for looking at single records, without TensorFlow.

TensorFlow takes seconds to import; a look at the first records of a file does not
need it. The message stands in a pool of its own, so that it cannot meet TensorFlow's.
"""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

_FIELD = descriptor_pb2.FieldDescriptorProto
_LISTS = (
    ("BytesList", "bytes_list", _FIELD.TYPE_BYTES),
    ("FloatList", "float_list", _FIELD.TYPE_FLOAT),
    ("Int64List", "int64_list", _FIELD.TYPE_INT64),
)


def _add(message, name: str, number: int, kind: int, label: int, type_name: str = ""):
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if type_name:
        field.type_name = f".records.{type_name}"
    return field


@functools.cache
def _example_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(
        name="records_example.proto", package="records", syntax="proto3"
    )
    one, many = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED
    feature = descriptor_pb2.DescriptorProto(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, field_name, kind) in enumerate(_LISTS, 1):
        _add(file.message_type.add(name=name), "value", 1, kind, many)
        field = _add(feature, field_name, number, _FIELD.TYPE_MESSAGE, one, name)
        field.oneof_index = 0
    file.message_type.append(feature)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    _add(entry, "key", 1, _FIELD.TYPE_STRING, one)
    _add(entry, "value", 2, _FIELD.TYPE_MESSAGE, one, "Feature")
    _add(features, "feature", 1, _FIELD.TYPE_MESSAGE, many, "Features.FeatureEntry")
    example = file.message_type.add(name="Example")
    _add(example, "features", 1, _FIELD.TYPE_MESSAGE, one, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("records.Example")
    )


def parse(record: bytes) -> dict[str, tuple[str, list[Any]]] | None:
    """Returns each feature's kind ("bytes", "float" or "int64") and values.

    A feature without values is left out. None if the record is no Example.
    """
    example = _example_class()()
    try:
        example.ParseFromString(record)
    except DecodeError:
        return None
    found = {}
    for name, feature in example.features.feature.items():
        field = feature.WhichOneof("kind")
        values = list(getattr(feature, field).value) if field else []
        if values:
            found[name] = (field.removesuffix("_list"), values)
    return found
