"""A local HTTP server that speaks TensorFlow Serving's REST API."""
