"""Feature declarations to layers, models and model_fns; knows no files."""
