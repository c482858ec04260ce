"""Raw files of every format, behind one interface.

`registry.open_inputs` turns the flags into sources; `base.Source` says what a source
can do. One module a format: `delimited`, `json_lines`, `parquet`, `tfrecord`; prepared
TensorFlow Datasets are TFRecord files that `prepared_datasets` finds.
"""
