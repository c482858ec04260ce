"""The feature declaration: read from YAML, checked, and written as YAML."""

from pipeline.declaration.reader import load
from pipeline.declaration.writer import dump

__all__ = ["dump", "load"]
