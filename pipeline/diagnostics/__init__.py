"""What an evaluation tells beyond its metrics: curves, tables and slices."""
