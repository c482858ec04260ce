"""A model_fn of tf.compat.v1.layers with hooks, in the style of TF 1.15."""

import json

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags
from tensorflow.python.estimator.model_fn import EstimatorSpec
from tensorflow.python.training import basic_session_run_hooks

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Where checkpoints go.", required=True)
flags.DEFINE_integer("steps", 50, "Training steps.")


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.dense(
        features["x"],
        params["units"],
        activation=tf.nn.relu,
        kernel_initializer=tf.glorot_uniform_initializer(seed=1),
    )
    net = tf.layers.batch_normalization(net, training=training)
    with tf.variable_scope("head", reuse=tf.AUTO_REUSE):
        weights = tf.get_variable(
            "weights", [params["units"], 3], initializer=tf.zeros_initializer()
        )
        logits = tf.matmul(net, weights)
    classes = tf.argmax(logits, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"classes": classes, "probabilities": tf.nn.softmax(logits)}
        return EstimatorSpec(
            mode,
            predictions=outputs,
            export_outputs={"predict": tf.estimator.export.PredictOutput(outputs)},
        )
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, classes, name="accuracy")}
    tf.summary.scalar("batch_accuracy", metrics["accuracy"][1])
    if mode == tf.estimator.ModeKeys.EVAL:
        return EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    rate = tf.train.exponential_decay(
        params["rate"], tf.train.get_global_step(), 20, 0.9, staircase=True
    )
    optimizer = tf.train.AdamOptimizer(rate)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    logging = tf.train.LoggingTensorHook({"loss": loss, "rate": rate}, every_n_iter=10)
    return EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        training_hooks=[logging, Recorder(loss)],
        scaffold=tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2)),
    )


class Recorder(tf.train.SessionRunHook):
    """Remembers the losses."""

    losses = []

    def __init__(self, loss):
        self._loss = loss

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        Recorder.losses.append(float(run_values.results))


def data():
    rng = np.random.RandomState(11)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    y = np.argmax(x[:, :3] + 0.5 * x[:, 3:], axis=1).astype(np.int32)
    return x, y


def receiver():
    features = {"x": tf.placeholder(tf.float32, [None, 6], name="x")}
    return tf.estimator.export.ServingInputReceiver(features, features)


def main(argv):
    del argv
    x, y = data()
    train_input = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, y, batch_size=30, num_epochs=None, shuffle=False
    )
    test_input = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, y, batch_size=100, num_epochs=1, shuffle=False
    )
    estimator = tf.estimator.Estimator(
        model_fn,
        FLAGS.model_dir,
        tf.estimator.RunConfig(tf_random_seed=5, save_checkpoints_steps=20),
        params={"units": 12, "rate": 0.05},
    )
    stop = basic_session_run_hooks.StopAtStepHook(last_step=FLAGS.steps)
    estimator.train(train_input, hooks=[stop])
    metrics = estimator.evaluate(test_input)
    classes = [int(p["classes"]) for p in estimator.predict(test_input)]
    exported = estimator.export_savedmodel(FLAGS.model_dir + "/export", receiver)
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.loader.load(session, ["serve"], exported.decode())
        signature = meta.signature_def["serving_default"]
        served = session.run(
            signature.outputs["classes"].name, {signature.inputs["x"].name: x}
        )
    result = {k: float(v) for k, v in metrics.items()}
    result["served_as_predicted"] = float(np.mean(served == np.array(classes)))
    result["training"] = Recorder.losses
    result["variables"] = sorted(estimator.get_variable_names())
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    app.run(main)
