"""The part of a model that other formats can hold: from ids and numbers to answers.

LiteRT and ONNX runtimes have no string lookups and none of TensorFlow's hashes. So what
is converted begins behind the `FeatureEncoder`: its inputs are the features as the
signature `transform` answers them: int64 ids [batch], float32 numbers [batch, 1] and
images [batch, height, width, channels].
A client gets them from `transform`, or computes them from the files in `assets.extra`
(vocabularies, constants, declaration).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from model_fns import feature_layers
from pipeline.compat import estimator, tf
from pipeline.types import Crossed, Declaration, Feature, UserError, tokens_of

_v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Network:
    """A graph whose variables are constants.

    Attributes:
      graph_def: The graph.
      inputs: Feature name to the name of its placeholder, e.g. "age:0".
      specs: Feature name to type and shape of its values, with the batch open.
      outputs: Output name to the name of its tensor; float ones only.
    """

    graph_def: tf.compat.v1.GraphDef
    inputs: Mapping[str, str]
    specs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, str]

    def function(self) -> tf.types.experimental.ConcreteFunction:
        """Returns the network as a function of its inputs, in the order of `inputs`."""

        def run(*values):
            found = tf.graph_util.import_graph_def(
                self.graph_def,
                input_map=dict(zip(self.inputs.values(), values, strict=True)),
                return_elements=list(self.outputs.values()),
                name="",
            )
            return dict(zip(self.outputs, found, strict=True))

        return tf.function(
            run, input_signature=list(self.specs.values())
        ).get_concrete_function()


def refuse(reason: str) -> UserError:
    return UserError(f"--formats: {reason}; leave the flag out")


def input_names(features: Sequence[str]) -> dict[str, str]:
    """Returns names of inputs, which every format takes, for names of features."""
    names: dict[str, str] = {}
    for feature in features:
        name = re.sub(r"[^A-Za-z0-9_]", "_", feature)
        if not name[:1].isalpha():
            name = f"f_{name}"
        while name in names.values():
            name += "_"
        names[feature] = name
    return names


def _has_several(feature: Feature, declaration: Declaration) -> bool:
    parts = feature.of if isinstance(feature, Crossed) else ()
    return tokens_of(feature) is not None or any(
        _has_several(declaration.features[part], declaration) for part in parts
    )


def check_features(declaration: Declaration) -> None:
    """Checks that each feature is one tensor with a value, or an image, a row.

    Raises:
      UserError: A feature is not.
    """
    for name, feature in declaration.features.items():
        if _has_several(feature, declaration):
            raise refuse(f"feature {name} may have several values in a row")
        if getattr(feature, "weights", None) is not None:
            raise refuse(f"the values of feature {name} have weights")


def _encoded(graph: tf.Graph, features: Sequence[str]) -> dict[str, tf.Tensor]:
    """Returns what the encoder has made of each feature."""
    found = graph.get_collection(feature_layers.ENCODED)
    if not found:
        raise refuse(
            "this model reads feature columns, or raw columns in code of its own, and"
            " other formats have no such lookups; models from layers, e.g."
            " --model=keras_wide_deep, have the boundary behind which a format can begin"
        )
    if len(found) != len(features):
        raise refuse("this model encodes its features more than once")
    return dict(zip(features, found, strict=True))


def _frozen(
    graph: tf.Graph, checkpoint: str, outputs: Sequence[tf.Tensor]
) -> tf.compat.v1.GraphDef:
    with _v1.Session(graph=graph) as session:
        _v1.train.Saver().restore(session, checkpoint)
        return _v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [tensor.op.name for tensor in outputs]
        )


def extract(
    trained: estimator.Estimator, checkpoint: str, declaration: Declaration
) -> Network:
    """Returns the network of a trained model.

    Raises:
      UserError: The model has no boundary behind which a format can begin, or a
        feature is of a kind that no format takes.
    """
    check_features(declaration)
    with tf.Graph().as_default() as graph:
        _v1.train.create_global_step()
        dtypes = {"int": tf.int64, "float": tf.float32, "string": tf.string}
        features = {
            column.name: _v1.placeholder(dtypes[column.type.value], [None])
            for column in declaration.input_columns
        }
        spec = trained.model_fn(
            features, None, estimator.ModeKeys.PREDICT, trained.config
        )
        encoded = _encoded(graph, list(declaration.features))
        predictions = {
            name: tf.identity(value, f"answer_{i}")
            for i, (name, value) in enumerate(sorted(spec.predictions.items()))
            if value.dtype == tf.float32
        }
        frozen = _frozen(graph, checkpoint, list(predictions.values()))
    names = input_names(list(encoded))
    with tf.Graph().as_default() as graph:
        placeholders = {
            feature: _v1.placeholder(
                value.dtype, [None, *value.shape[1:]], names[feature]
            )
            for feature, value in encoded.items()
        }
        answers = tf.graph_util.import_graph_def(
            frozen,
            input_map={encoded[f].name: p for f, p in placeholders.items()},
            return_elements=[value.name for value in predictions.values()],
            name="network",
        )
        outputs = {
            name: tf.identity(value, name)
            for name, value in zip(predictions, answers, strict=True)
        }
        reduced = _v1.graph_util.extract_sub_graph(
            graph.as_graph_def(), [value.op.name for value in outputs.values()]
        )
    kept = {node.name for node in reduced.node if node.op == "Placeholder"}
    used = {f: p for f, p in placeholders.items() if p.op.name in kept}
    past = kept - {p.op.name for p in used.values()}
    if past:
        raise refuse("this model reads columns in other ways than by its features")
    return Network(
        reduced,
        {feature: p.name for feature, p in used.items()},
        {
            feature: tf.TensorSpec(p.shape, p.dtype, names[feature])
            for feature, p in used.items()
        },
        {name: value.name for name, value in outputs.items()},
    )
