"""Serving receivers, exporters and verification of SavedModels."""
