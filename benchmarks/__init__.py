"""Measurements of the pipeline against other ways to do the same: `make bench`."""
