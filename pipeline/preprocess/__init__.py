"""Raw files to a dataset: reading, checking, statistics, records."""
