"""Writes an Estimator's checkpoint as a SavedModel with a fixed set of signatures.

    serving_default   examples: string [batch]           -> the model's predictions
    predict           every column by name: [batch]      -> the model's predictions
    classify          examples (classifiers)             -> scores, classes
    regress           examples (regressors, binary)      -> outputs

Predictions have the names and shapes of `Estimator.predict` (first dimension the
batch). `classify` and `regress` are those of TensorFlow Serving's API.
"""

from __future__ import annotations

from collections.abc import Sequence

from export import receivers
from pipeline.compat import estimator, tf
from pipeline.types import Column

_v1 = tf.compat.v1
_signatures = _v1.saved_model.signature_def_utils
SERVING_DEFAULT = _v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
PREDICT = "predict"
CLASSIFY = "classify"
REGRESS = "regress"


def _signature_defs(
    receiver: receivers.Receiver, spec: estimator.EstimatorSpec
) -> dict:
    predictions = {n: receiver.answer(v) for n, v in spec.predictions.items()}
    found = {
        SERVING_DEFAULT: _signatures.predict_signature_def(
            {receivers.EXAMPLES: receiver.examples}, predictions
        ),
        PREDICT: _signatures.predict_signature_def(dict(receiver.columns), predictions),
    }
    for output in spec.export_outputs.values():
        if isinstance(output, estimator.export.ClassificationOutput):
            found[CLASSIFY] = _signatures.classification_signature_def(
                receiver.examples,
                receiver.answer(output.classes),
                receiver.answer(output.scores),
            )
        elif isinstance(output, estimator.export.RegressionOutput):
            found[REGRESS] = _signatures.regression_signature_def(
                receiver.examples, receiver.answer(output.value)
            )
    return found


def write(
    trained: estimator.Estimator,
    checkpoint: str,
    columns: Sequence[Column],
    directory: str,
) -> list[str]:
    """Writes the SavedModel.

    Args:
      trained: The Estimator.
      checkpoint: Path prefix of the checkpoint to export.
      columns: The columns of a request.
      directory: A directory that does not exist yet.

    Returns:
      The names of its signatures.
    """
    with tf.Graph().as_default():
        _v1.train.create_global_step()
        receiver = receivers.receiver(columns)
        spec = trained.model_fn(
            dict(receiver.features), None, estimator.ModeKeys.PREDICT, trained.config
        )
        signature_defs = _signature_defs(receiver, spec)
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
