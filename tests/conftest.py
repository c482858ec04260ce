"""Lets pytest put this folder on the path, so that tests can import its helpers."""
