"""The premade k-means Estimator: clusters of rows, without a label."""

from __future__ import annotations

import dataclasses

from model_fns import feature_columns, premade_hparams
from pipeline.compat import estimator, estimator_v1, tf
from pipeline.types import Constants, Declaration, UserError

_DISTANCES = {
    "squared_euclidean": estimator_v1.experimental.KMeans.SQUARED_EUCLIDEAN_DISTANCE,
    "cosine": estimator_v1.experimental.KMeans.COSINE_DISTANCE,
}
_STARTS = {
    "kmeans_plus_plus": estimator_v1.experimental.KMeans.KMEANS_PLUS_PLUS_INIT,
    "random": estimator_v1.experimental.KMeans.RANDOM_INIT,
}


def _read_before_adding(graph: tf.Graph) -> None:
    """Makes each update of a variable wait for all that read it in the same step.

    The premade graph does not say so. A centre moves by 1 / its count, and whether the
    count is read before or after the step's rows are added to it was left to chance, so
    that no two trainings gave the same clusters.
    """
    operations = graph.get_operations()
    for add in operations:
        if add.type != "ResourceScatterAdd":
            continue
        for reader in operations:
            reads = reader.type in ("ResourceGather", "ReadVariableOp")
            same = reads and reader.inputs[0] is add.inputs[0]
            if same and add not in reader.control_inputs:
                add._add_control_input(reader)


_TRAINED = ("embedding", "shared")


class _FirstBatch(tf.compat.v1.train.SessionRunHook):
    """Skips a batch where training goes on.

    Training that begins draws its first centres from a batch of their own. That batch
    is no step, so a run that goes on would otherwise be one batch behind.
    """

    def __init__(self, batch: tf.Tensor):
        self._batch = batch

    def after_create_session(self, session, coord):
        step = tf.compat.v1.train.get_global_step(session.graph)
        if session.run(step):
            session.run(self._batch)


def build(
    declaration: Declaration,
    constants: Constants,
    settings: premade_hparams.KMeans,
    config: estimator.RunConfig,
) -> estimator.Estimator:
    """Returns an Estimator that finds clusters in the deep part's features.

    Categories are one-hot, whatever their `embedding`. Predictions: `cluster_index`,
    int64 [batch], and `all_distances`, float32 [batch, clusters] (squared where they are
    Euclidean). A label is not looked at. A run that goes on gives the clusters of an
    uninterrupted one where a batch has at least as many rows as there are clusters.

    The loss is the mean distance to the nearest centre; the premade one is a batch's
    sum, whose mean over batches depends on their size.

    Raises:
      UserError: No feature is for the deep part.
    """
    # An embedding that nothing trains would place categories at random.
    features = {
        name: dataclasses.replace(f, **{n: None for n in _TRAINED if hasattr(f, n)})
        for name, f in declaration.features.items()
    }
    _, columns = feature_columns.compile_columns(
        dataclasses.replace(declaration, features=features), constants
    )
    if not columns:
        raise UserError(
            "no feature is for the deep part, so there is nothing to cluster by; give"
            " a feature `use: both` or `use: deep`"
        )

    def model_fn(features, labels, mode, config):
        del labels
        premade = estimator_v1.experimental.KMeans(
            settings.clusters,
            initial_clusters=_STARTS[settings.start],
            distance_metric=_DISTANCES[settings.distance],
            seed=config.tf_random_seed,
            feature_columns=columns,
            config=config,
        )
        inputs = feature_columns.inputs(features, declaration)
        spec = premade.model_fn(inputs, None, mode, config)
        if mode == estimator.ModeKeys.TRAIN:
            _read_before_adding(tf.compat.v1.get_default_graph())
        distances = tf.reduce_min(
            spec.predictions[premade.ALL_DISTANCES], axis=1, name="nearest"
        )
        metrics = {"average_loss": tf.compat.v1.metrics.mean(distances)}
        first = next(value for _, value in sorted(features.items()))
        return spec._replace(
            loss=tf.reduce_mean(distances),
            eval_metric_ops=metrics,
            export_outputs={
                "predict": estimator.export.PredictOutput(spec.predictions)
            },
            training_hooks=[*spec.training_hooks, _FirstBatch(first)],
        )

    return estimator.Estimator(model_fn, config=config)
