"""Clusters: who takes part, how they share the work, and how they all end."""
