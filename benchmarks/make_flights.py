"""Makes flights of the shape of nycflights13's: python -m benchmarks.make_flights."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv

ROWS = 336_776
_CHUNK = 100_000
_CARRIERS = [
    "UA",
    "B6",
    "EV",
    "DL",
    "AA",
    "MQ",
    "US",
    "9E",
    "WN",
    "VX",
    "FL",
    "AS",
    "F9",
    "YV",
    "HA",
    "OO",
]
_ORIGINS = ["EWR", "JFK", "LGA"]


def _chunk(draw: np.random.Generator, rows: int) -> pa.Table:
    hour = draw.integers(5, 24, rows)
    minute = draw.integers(0, 60, rows)
    planned = hour * 100 + minute
    delay = np.round(draw.gamma(0.6, 40, rows) - 12)
    air_time = draw.integers(20, 690, rows).astype(float)
    distance = (air_time * 7.1).astype(int)
    cancelled = draw.random(rows) < 0.0245
    month, day = draw.integers(1, 13, rows), draw.integers(1, 29, rows)
    airports = np.array([f"A{i:02d}" for i in range(105)])
    planes = np.array([f"N{i:03d}UA" for i in range(4043)])
    times = [
        f"2013-{m:02d}-{d:02d}T{h:02d}:00:00Z"
        for m, d, h in zip(month, day, hour, strict=True)
    ]

    def unless_cancelled(values: np.ndarray) -> pa.Array:
        return pa.array(values.astype(float), mask=cancelled)

    return pa.table(
        {
            "year": np.full(rows, 2013),
            "month": month,
            "day": day,
            "dep_time": unless_cancelled(planned + delay % 60),
            "sched_dep_time": planned,
            "dep_delay": unless_cancelled(delay),
            "arr_time": unless_cancelled((planned + air_time) % 2400),
            "sched_arr_time": ((planned + air_time) % 2400).astype(int),
            "arr_delay": unless_cancelled(delay - draw.integers(-15, 16, rows)),
            "carrier": np.array(_CARRIERS)[draw.integers(0, len(_CARRIERS), rows)],
            "flight": draw.integers(1, 8500, rows),
            "tailnum": planes[draw.zipf(1.2, rows) % len(planes)],
            "origin": np.array(_ORIGINS)[draw.integers(0, 3, rows)],
            "dest": airports[draw.integers(0, len(airports), rows)],
            "air_time": unless_cancelled(air_time),
            "distance": distance,
            "hour": hour,
            "minute": minute,
            "time_hour": times,
        }
    )


def write(path: str, rows: int = ROWS, seed: int = 1) -> None:
    """Writes a gzip CSV file; the same rows and seed give the same flights."""
    draw = np.random.default_rng(seed)
    with gzip.open(path, "wb", compresslevel=6) as f:
        for start in range(0, rows, _CHUNK):
            text = io.BytesIO()
            options = pa.csv.WriteOptions(
                include_header=start == 0, quoting_style="needed"
            )
            pa.csv.write_csv(_chunk(draw, min(_CHUNK, rows - start)), text, options)
            f.write(text.getvalue())


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
