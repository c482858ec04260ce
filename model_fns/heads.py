"""The head that fits a label: loss, metrics and export outputs."""

from __future__ import annotations

from model_fns import hparams, losses
from pipeline.compat import estimator, tf
from pipeline.types import Declaration, Distribution, Label, Labels, Task, UserError

_DEFAULTS = hparams.Objective()
_MAX_CLASSES_SHOWN = 10


class _KnownClasses:
    """A table of class names that fails on one that is no class, and shows it."""

    def __init__(self, table: tf.lookup.StaticHashTable, label: Label):
        self._table = table
        self._label = label

    def lookup(self, names: tf.Tensor) -> tf.Tensor:
        ids = self._table.lookup(names)
        known = tf.greater_equal(ids, 0)
        shown = ", ".join(self._label.classes[:_MAX_CLASSES_SHOWN])
        check = tf.debugging.Assert(
            tf.reduce_all(known),
            [
                f"label {self._label.column}: not one of the classes {shown}:",
                tf.boolean_mask(names, tf.logical_not(known)),
            ],
        )
        with tf.control_dependencies([check]):
            return tf.identity(ids)


class _OfClasses:
    """What heads of named classes do besides what the premade ones do.

    They make their tables of names once a graph, outside of any loop in it; the premade
    ones make one at each use, where a loop of steps cannot initialise it. And they name
    a label that is no class, where the premade ones show its id, -1.
    """

    def __init__(self, label: Label, *args, **kwargs):
        super().__init__(*args, label_vocabulary=list(label.classes), **kwargs)
        self._label = label
        self._made: tuple[tf.Graph, dict] | None = None

    def _once(self, name: str):
        with tf.init_scope():
            graph = tf.compat.v1.get_default_graph()
            # Of the last graph alone: a table keeps its graph alive.
            if self._made is None or self._made[0] is not graph:
                self._made = (graph, {})
            tables = self._made[1]
            if name not in tables:
                tables[name] = getattr(super(), name)
            return tables[name]

    @property
    def _class_id_table(self):
        return _KnownClasses(self._once("_class_id_table"), self._label)

    @property
    def _class_string_table(self):
        return self._once("_class_string_table")


class _BinaryClassHead(_OfClasses, estimator.BinaryClassHead):
    pass


class _MultiClassHead(_OfClasses, estimator.MultiClassHead):
    pass


def _of_classes(label: Label, **common) -> estimator.Head:
    # Known to the head as the user's labels, so predictions and exports carry them.
    if label.task is Task.BINARY:
        return _BinaryClassHead(label, **common)
    if label.task is Task.MULTI_LABEL:
        return estimator.MultiLabelHead(
            len(label.classes), label_vocabulary=list(label.classes), **common
        )
    return _MultiClassHead(label, len(label.classes), **common)


def _of_numbers(label: Label, loss_fn, **common) -> estimator.Head:
    if label.distribution is Distribution.POISSON:
        # The full negative log likelihood would only add a function of the label.
        return estimator.PoissonRegressionHead(compute_full_loss=False, **common)
    if label.distribution is Distribution.LOGISTIC:
        return estimator.LogisticRegressionHead(**common)
    if label.distribution is Distribution.LOGNORMAL:
        common["inverse_link_fn"] = tf.exp
    return estimator.RegressionHead(loss_fn=loss_fn, **common)


class _MultiHead(estimator.MultiHead):
    """Names its predictions `label/output` instead of by pairs."""

    def predictions(self, logits, keys=None):
        return {
            "/".join(name): value
            for name, value in super().predictions(logits, keys).items()
        }


def _one(
    label: Label, settings: hparams.Objective, weight_column: str | None, name=None
) -> estimator.Head:
    loss_fn = losses.for_label(label, settings)
    common = {"weight_column": weight_column, "name": name}
    if label.classes is None:
        return _of_numbers(label, loss_fn, **common)
    return _of_classes(label, loss_fn=loss_fn, **common)


def _several(
    labels: Labels, settings: hparams.Objective, weight_column: str | None
) -> estimator.Head:
    if settings.loss != "default" or settings.class_weights:
        raise UserError("--hparams: loss and class_weights are for models of one label")
    return _MultiHead(
        [
            _one(label, settings, weight_column, name)
            for name, label in labels.of.items()
        ],
        [labels.weights[name] for name in labels.of],
    )


def head(
    declaration: Declaration,
    settings: hparams.Objective = _DEFAULTS,
    weight_column: str | None = None,
) -> estimator.Head:
    """Returns the Estimator head for the declared label or labels.

    `head.logits_dimension` is the number of a model's outputs: it returns logits
    float32 [batch, logits_dimension], those of several labels side by side.

    Labels come as `input_fns.labels` makes them. Losses are averaged over the rows;
    with weights it is sum(weight * loss) / rows.

    Args:
      settings: The loss and the weights of classes.
      weight_column: Name of the rows' weights among the features, where it is not
        the declared column's.

    Raises:
      UserError: The loss or the class weights do not fit the label.
    """
    weight = declaration.weight and (weight_column or declaration.weight)
    if isinstance(declaration.label, Labels):
        return _several(declaration.label, settings, weight)
    return _one(declaration.label, settings, weight)
