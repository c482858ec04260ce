"""The premade linear model, trained by stochastic dual coordinate ascent (SDCA)."""

from __future__ import annotations

from collections.abc import Mapping

from model_fns import feature_columns, heads, premade, premade_hparams
from pipeline.compat import estimator, tf
from pipeline.types import Constants, Declaration, Distribution, UserError

_ID = "row id"
# A batch across the end of an epoch may hold a row twice, so some are no sign.
_MAX_ALIKE = 0.25


def _row_ids(features: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
    """Returns a text for each row, [batch], that says all of it.

    SDCA keeps a number for each training row and finds it by the row's id. Datasets
    have no ids, so a row's content is its id.

    In the graph of training it fails where many rows of a batch are alike: SDCA would
    take all of them for one row, and the model would be wrong.
    """
    parts = [
        value if value.dtype == tf.string else tf.strings.as_string(value)
        for _, value in sorted(features.items())
    ]
    parts.append(labels if labels.dtype == tf.string else tf.strings.as_string(labels))
    # The lengths, so that no two rows become one text.
    lengths = [tf.strings.as_string(tf.strings.length(part)) for part in parts]
    ids = tf.strings.join(
        [
            tf.strings.join([n, part], ":")
            for n, part in zip(lengths, parts, strict=True)
        ]
    )
    rows = tf.size(ids)
    alike = 1 - tf.size(tf.unique(ids).y) / rows
    check = tf.debugging.Assert(
        tf.less_equal(alike, _MAX_ALIKE),
        [
            "linear_sdca needs rows that differ: in a batch, of",
            rows,
            "rows the share that equals another one in all inputs and the label is",
            alike,
            f"and {_MAX_ALIKE} is allowed; use --model=linear, or, where there are few"
            " rows, a smaller --batch_size",
        ],
    )
    with tf.control_dependencies([check]):
        return tf.identity(ids)


def build(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.LinearSdca,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns a premade linear Estimator over the wide part and all numbers.

    Raises:
      UserError: The label is a regression of another distribution than normal, for
        which the premade optimizer would silently minimise squares.
    """
    label = declaration.label
    if label.distribution is not Distribution.NORMAL:
        raise UserError(
            f"--model=linear_sdca does no {label.distribution.value} regression; use"
            " --model=linear"
        )
    columns = premade.linear_columns(declaration, constants)

    def model_fn(features, labels, mode, config):
        inputs = feature_columns.inputs(features, declaration)
        head = heads.head(declaration, weight_column=feature_columns.WEIGHT)
        if mode == estimator.ModeKeys.TRAIN:
            inputs[_ID] = _row_ids(features, labels)
            if label.classes is not None:
                # The optimizer gets the labels that the head gets, and wants numbers.
                labels = tf.cast(tf.equal(labels, label.classes[1]), tf.float32)
                weight = feature_columns.WEIGHT if declaration.weight else None
                head = estimator.BinaryClassHead(weight_column=weight)
        linear = estimator.LinearEstimator(
            head,
            columns,
            optimizer=estimator.experimental.LinearSDCA(
                example_id_column=_ID,
                symmetric_l1_regularization=settings.l1,
                symmetric_l2_regularization=settings.l2,
                adaptive=settings.adaptive,
            ),
            config=config,
        )
        return linear.model_fn(inputs, labels, mode, config)

    return estimator.Estimator(model_fn, config=config)
