"""tf.data input functions: they know datasets and no model."""
