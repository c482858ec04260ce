"""The stages of an Estimator training pipeline and its command line."""

__version__ = "0.1.0"
