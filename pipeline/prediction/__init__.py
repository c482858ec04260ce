"""Batch prediction: raw files through an exported version."""
