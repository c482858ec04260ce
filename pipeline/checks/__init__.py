"""Checks of a finished dataset: against a schema and against an earlier dataset."""
