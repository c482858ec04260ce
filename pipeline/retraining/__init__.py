"""Scheduled retraining: windows of days, gates, blessing, publishing, lineage."""
