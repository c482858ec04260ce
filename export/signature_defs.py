"""What the signatures of a written SavedModel take and give."""

from __future__ import annotations

import os
from collections.abc import Mapping

from google.protobuf import descriptor_pool, message_factory

from pipeline.compat import tf

_METHODS = {
    tf.compat.v1.saved_model.signature_constants.CLASSIFY_METHOD_NAME: "classify",
    tf.compat.v1.saved_model.signature_constants.REGRESS_METHOD_NAME: "regress",
}
# The loader's own bookkeeping.
_INTERNAL = "__saved_model_init_op"


def read(directory: str) -> Mapping[str, tf.compat.v1.MetaGraphDef.SignatureDefEntry]:
    """Returns the SignatureDefs of a SavedModel by name; loads no graph."""
    # TensorFlow registers its protos, but offers this one under no public name.
    pool = descriptor_pool.Default()
    saved_model = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.SavedModel")
    )()
    with open(os.path.join(directory, "saved_model.pb"), "rb") as f:
        saved_model.ParseFromString(f.read())
    found = saved_model.meta_graphs[0].signature_def
    return {name: found[name] for name in sorted(found) if name != _INTERNAL}


def kind(signature) -> str:
    """Returns what a signature takes.

    "classify" and "regress" are TensorFlow Serving's APIs of these names; of the
    others "examples" takes serialized tf.Examples, "columns" a tensor a column.
    """
    of_method = _METHODS.get(signature.method_name)
    if of_method:
        return of_method
    return "examples" if list(signature.inputs) == ["examples"] else "columns"
