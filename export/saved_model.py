"""Writes an Estimator's checkpoint as a SavedModel with a fixed set of signatures.

    serving_default   examples: string [batch]           -> the model's predictions
    predict           every column by name: [batch]      -> the model's predictions
    classify          examples (classifiers)             -> scores, classes
    regress           examples (regressors, binary)      -> outputs
    transform         examples                           -> the features as the model
                                                            sees them
    embeddings        examples (where it is asked for)   -> embedding

Predictions have the names and shapes of `Estimator.predict` (first dimension the
batch), and the columns that are forwarded. `classify` and `regress` are those of
TensorFlow Serving's API; of a model of several labels they answer for the first, and
NAME/classify, NAME/regress and NAME/predict for each. What else a model_fn exports is
there under its own name, and takes examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from export import receivers
from model_fns import embeddings
from pipeline.compat import estimator, tf
from pipeline.types import Column, UserError

_v1 = tf.compat.v1
_signatures = _v1.saved_model.signature_def_utils
SERVING_DEFAULT = _v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
PREDICT = "predict"
CLASSIFY = "classify"
REGRESS = "regress"
TRANSFORM = "transform"
EMBEDDINGS = "embeddings"
EMBEDDING = "embedding"
"""The output of EMBEDDINGS."""
_OF_HEADS = ("classification", "regression", PREDICT)
"""The keys under which a head exports."""

Transform = Callable[[Mapping[str, "tf.Tensor"]], Mapping[str, "tf.Tensor"]]
"""Columns as a model_fn gets them to features as the model sees them."""


def _predictions(
    receiver: receivers.Receiver, spec: estimator.EstimatorSpec
) -> dict[str, tf.Tensor]:
    """Returns the answer of `serving_default` and `predict`."""
    answers = {name: receiver.answer(v) for name, v in spec.predictions.items()}
    for name in receiver.forwarded:
        if name in answers:
            raise UserError(
                f"--forward_features: the model has an output {name} of its own; there"
                f" are {', '.join(answers)}"
            )
    return {**answers, **receiver.forwarded}


def _signature_defs(
    receiver: receivers.Receiver, spec: estimator.EstimatorSpec
) -> dict:
    predictions = _predictions(receiver, spec)
    found = {
        SERVING_DEFAULT: _signatures.predict_signature_def(
            {receivers.EXAMPLES: receiver.examples}, predictions
        ),
        PREDICT: _signatures.predict_signature_def(dict(receiver.columns), predictions),
    }
    for key, output in (spec.export_outputs or {}).items():
        name, signature = _exported(key, output, receiver)
        # What stands under a name of its own comes after the default.
        found.setdefault(name, signature)
    return found


def _exported(key: str, output, receiver: receivers.Receiver):
    """Returns name and signature of what a model_fn exports under a key."""
    of, _, last = key.rpartition("/")
    if last not in (*_OF_HEADS, SERVING_DEFAULT):
        of = key
    prefix = f"{of}/" if of else ""
    if isinstance(output, estimator.export.ClassificationOutput):
        return prefix + CLASSIFY, _signatures.classification_signature_def(
            receiver.examples,
            None if output.classes is None else receiver.answer(output.classes),
            None if output.scores is None else receiver.answer(output.scores),
        )
    if isinstance(output, estimator.export.RegressionOutput):
        return prefix + REGRESS, _signatures.regression_signature_def(
            receiver.examples, receiver.answer(output.value)
        )
    return prefix + PREDICT if last == PREDICT or not of else key, (
        _signatures.predict_signature_def(
            {receivers.EXAMPLES: receiver.examples},
            {n: receiver.answer(v) for n, v in output.outputs.items()},
        )
    )


def _embeddings(receiver: receivers.Receiver):
    """Returns the signature that answers a row as the last hidden layer sees it.

    Its output `embedding` is float32 [batch, width]; forwarded columns stand beside it.
    """
    hidden = embeddings.kept(_v1.get_default_graph())
    if hidden is None:
        raise UserError(
            "--export_embeddings: this model has no hidden layer whose values could be a"
            " row's embedding (linear models, baseline and kmeans have none; a model of"
            " your own calls model_fns.embeddings.keep); leave the flag out"
        )
    if EMBEDDING in receiver.forwarded:
        raise UserError(
            f"--forward_features: {EMBEDDING} is an output of the signature"
            f" {EMBEDDINGS}; rename the column, or leave --export_embeddings out"
        )
    answer = receiver.answer(tf.cast(hidden, tf.float32))
    return _signatures.predict_signature_def(
        {receivers.EXAMPLES: receiver.examples},
        {EMBEDDING: answer, **receiver.forwarded},
    )


def write(
    trained: estimator.Estimator,
    checkpoint: str,
    columns: Sequence[Column],
    directory: str,
    forwarded: Sequence[Column] = (),
    transform: Transform | None = None,
    with_embeddings: bool = False,
) -> list[str]:
    """Writes the SavedModel.

    Args:
      trained: The Estimator.
      checkpoint: Path prefix of the checkpoint to export.
      columns: The columns of a request.
      directory: A directory that does not exist yet.
      forwarded: Columns that answers repeat, e.g. a key; those that the model does
        not read become part of a request.
      transform: What the signature `transform` answers; without it there is none.
      with_embeddings: Whether there is a signature `embeddings`, see `_embeddings`.

    Returns:
      The names of its signatures.

    Raises:
      UserError: A forwarded column has the name of an output, the model_fn has
        a signature `transform` of its own, or the model has no embeddings.
    """
    with tf.Graph().as_default():
        _v1.train.create_global_step()
        receiver = receivers.receiver(columns, forwarded)
        spec = trained.model_fn(
            dict(receiver.features), None, estimator.ModeKeys.PREDICT, trained.config
        )
        signature_defs = _signature_defs(receiver, spec)
        if transform is not None and TRANSFORM in signature_defs:
            raise UserError(
                f"the model_fn exports under the key {TRANSFORM}, where the features"
                " stand as the model sees them; give it another name in export_outputs"
            )
        if transform is not None:
            seen = transform(receiver.features)
            signature_defs[TRANSFORM] = _signatures.predict_signature_def(
                {receivers.EXAMPLES: receiver.examples},
                {name: receiver.answer(value) for name, value in seen.items()},
            )
        if with_embeddings:
            signature_defs[EMBEDDINGS] = _embeddings(receiver)
        saver = _v1.train.Saver(sharded=True)
        with _v1.Session() as session:
            saver.restore(session, checkpoint)
            builder = _v1.saved_model.Builder(directory)
            builder.add_meta_graph_and_variables(
                session,
                [_v1.saved_model.tag_constants.SERVING],
                signature_def_map=signature_defs,
                main_op=_v1.tables_initializer(),
                saver=saver,
                strip_default_attrs=True,
            )
            builder.save()
    return sorted(signature_defs)
