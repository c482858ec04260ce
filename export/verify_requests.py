"""What verify_child.py tries beside the rows of a split; it loads this file.

Batches of other sizes, the loader of TensorFlow 1, and requests that must be refused.
Each function returns what is wrong. Imports nothing of this project.
"""

import base64

import numpy as np
import tensorflow as tf

_v1 = tf.compat.v1
_V1_ROWS = 3


def _tiled(values, size: int):
    """Returns so many rows, taken again from the first where there are too few."""
    return tf.gather(values, np.arange(size) % max(len(values), 1))


def batches(signature, name: str, inputs: dict, wanted: dict, sizes, compare) -> list:
    """Calls a signature with batches of other sizes.

    Args:
      inputs: Input name to rows.
      wanted: Output name to the rows that it must answer.
      compare: (output, what was found, all wanted rows) to what is wrong, or "".
    """
    wrong = []
    for size in sizes:
        found = signature(**{n: _tiled(v, size) for n, v in inputs.items()})
        rows = {n: _tiled(value, size).numpy() for n, value in wanted.items()}
        for output in wanted:
            problem = compare(output, found[output].numpy(), rows)
            if problem:
                wrong.append(
                    f"output {output} of signature {name}, in a batch of {size:,},"
                    f" {problem}"
                )
    return wrong


def v1_loader(model_dir: str, by_signature: dict, wanted: dict, compare) -> list:
    """Loads the model into a session of TensorFlow 1 and runs the signatures.

    Args:
      by_signature: Signature name to its inputs.
    """
    wrong = []
    with tf.Graph().as_default(), _v1.Session() as session:
        graph = _v1.saved_model.load(session, ["serve"], model_dir)
        for name, inputs in by_signature.items():
            signature = graph.signature_def[name]
            feeds = {
                signature.inputs[n].name: v.numpy()[:_V1_ROWS]
                for n, v in inputs.items()
            }
            fetches = {n: signature.outputs[n].name for n in wanted}
            found = session.run(fetches, feeds)
            rows = {n: value[:_V1_ROWS] for n, value in wanted.items()}
            for output in wanted:
                problem = compare(output, found[output], rows)
                if problem:
                    wrong.append(
                        f"output {output} of signature {name}, in the loader of"
                        f" TensorFlow 1, {problem}"
                    )
    return wrong


def wrong_columns(signature, name: str, inputs: dict) -> list:
    """Sends columns of a wrong type, and requests that lack one.

    TensorFlow refuses a type before the graph sees it, with the number of the input,
    so the name is told here.
    """
    wrong = []
    for column, values in inputs.items():
        is_text = values.dtype == tf.string
        other = tf.zeros_like(values, tf.int64) if is_text else tf.as_string(values)
        for told, request in (
            (
                "an int instead of text" if is_text else "text instead of a number",
                other,
            ),
            ("no such input", None),
        ):
            given = {n: v for n, v in inputs.items() if n != column}
            if request is not None:
                given[column] = request
            try:
                signature(**given)
            except (tf.errors.InvalidArgumentError, TypeError, ValueError):
                continue
            wrong.append(
                f"feature {column}, {told}: a request of signature {name} with it is"
                " answered"
            )
    return wrong


def refusals(signature, requests) -> list:
    """Sends requests that must fail with an error that names the feature."""
    wrong = []
    for request in requests:
        example = tf.constant([base64.b64decode(request["example"])])
        told = f"feature {request['feature']}, {request['what']}"
        try:
            signature(examples=example)
        except tf.errors.InvalidArgumentError as error:
            if request["feature"] not in str(error):
                wrong.append(f"{told}: the error does not name it: {error}")
        else:
            wrong.append(f"{told}: a request with it is answered")
    return wrong
