"""Other formats of a model than SavedModel, each compared with it."""
