"""The same work by hand: one process, pyarrow and numpy, no Beam.

It reads with Arrow's own CSV reader, divides rows by the same hash, encodes with
the project's encoders (nothing faster is known) and computes its statistics over
whole columns in memory. Unlike the stage it rejects nothing (a bad value ends it),
knows no line numbers and needs memory for all the data.

Arguments: OUTPUT FORM PATH
"""

from __future__ import annotations

import collections
import json
import os

from benchmarks import measure
from benchmarks.ours import DECLARATION


def _statistics(chunks: list) -> dict:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.chunked_array(chunks)
    found = {"count": len(column), "missing": column.null_count}
    if not pa.types.is_binary(column.type):
        values = column.drop_null().to_numpy().astype(np.float64)
        logs = np.copysign(np.log1p(np.abs(values)), values)
        found |= {
            "mean": float(values.mean()),
            "variance": float(values.var()),
            "log_mean": float(logs.mean()),
            "log_variance": float(logs.var()),
            "zeros": int((values == 0).sum()),
            "distinct": len(pc.unique(column)),
            "quantiles": np.quantile(
                values, np.arange(21) / 20, method="inverted_cdf"
            ).tolist(),
        }
    else:
        counts = pc.value_counts(column.drop_null())
        top = sorted(
            zip(
                counts.field("counts").to_pylist(),
                counts.field("values").to_pylist(),
                strict=True,
            ),
            key=lambda pair: (-pair[0], pair[1]),
        )
        found |= {
            "distinct": len(top),
            "values": [[value.decode(), count] for count, value in top],
        }
    return found


def _work(output: str, form: str, path: str) -> int:
    import pyarrow as pa
    import pyarrow.csv

    from pipeline import declaration as declarations
    from pipeline import files
    from pipeline.compat import tf
    from pipeline.preprocess import block_encoder, example_encoder, splits
    from pipeline.types import BLOCK_ROWS, ColumnType

    declaration = declarations.load(DECLARATION)
    types = {
        ColumnType.INT: pa.int64(),
        ColumnType.FLOAT: pa.float32(),
        ColumnType.STRING: pa.binary(),
    }
    reader = pa.csv.open_csv(
        pa.input_stream(path),
        pa.csv.ReadOptions(block_size=4 << 20, use_threads=False),
        convert_options=pa.csv.ConvertOptions(
            column_types={c.name: types[c.type] for c in declaration.columns.values()},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    os.mkdir(output)
    writers = {
        split: tf.io.TFRecordWriter(os.path.join(output, f"{split}.tfrecord"))
        for split in declaration.split.fractions
    }
    columns = collections.defaultdict(list)
    waiting = collections.defaultdict(list)
    rows = 0

    def write_blocks(split: str, final: bool) -> None:
        table = pa.Table.from_batches(waiting[split]).combine_chunks().to_batches()[0]
        whole = table.num_rows
        if not final:
            whole -= whole % BLOCK_ROWS
        for block in block_encoder.encode(table.slice(0, whole), BLOCK_ROWS):
            writers[split].write(block)
        waiting[split] = [table.slice(whole)]

    for batch in reader:
        rows += batch.num_rows
        divided = splits.divide(batch, declaration.split)
        records = example_encoder.encode(divided.table) if form == "rows" else ()
        for split, start, stop in divided.parts:
            part = divided.table.slice(start, stop - start)
            for name in part.schema.names:
                columns[split, name].append(part.column(name))
            if form == "rows":
                for record in records[start:stop]:
                    writers[split].write(record)
            else:
                waiting[split].append(part)
                write_blocks(split, final=False)
    for split, writer in writers.items():
        if form == "blocks":
            write_blocks(split, final=True)
        writer.close()
        files.digest_file(os.path.join(output, f"{split}.tfrecord"))
    found = {"/".join(key): _statistics(chunks) for key, chunks in columns.items()}
    with open(os.path.join(output, "statistics.json"), "w", encoding="utf-8") as f:
        json.dump(found, f)
    return rows


def main(output: str, form: str, path: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.load_tensorflow(0)
        import pyarrow.csv  # noqa: F401

        import_seconds = elapsed()
    with measure.stopwatch() as elapsed:
        rows = _work(output, form, path)
        seconds = elapsed()
    measure.report(rows, seconds, import_seconds, measure.size_of(output))
