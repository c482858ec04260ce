"""Makes the table of the flights example: `late`, and the flight as it was planned.

    python examples/flights/prepare.py nycflights13_flights.csv.gz work/flights.parquet

The raw table (nycflights13's flights: every flight out of New York in 2013, CC0) says
how late a flight arrived, in minutes. A flight counts as late where that is more than
15; flights that never arrived, or elsewhere, have no such number and are left out.
Nothing is kept that is known only once the flight is under way.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

LATE_MINUTES = 15
PLANNED = (
    *("month", "day", "sched_dep_time", "sched_arr_time"),
    *("carrier", "origin", "dest", "distance"),
)
"""The columns that are taken over; times are local, 1545 for a quarter to four pm."""


def prepare(flights: pa.Table) -> pa.Table:
    """Returns the planned flights with `date`, and `late` as 1 or 0, int64.

    Args:
      flights: year, month, day, arr_delay and the planned columns.
    """
    flights = flights.filter(pc.is_valid(flights["arr_delay"]))
    digits = [
        pc.utf8_lpad(pc.cast(flights[name], pa.string()), width, "0")
        for name, width in (("year", 4), ("month", 2), ("day", 2))
    ]
    late = pc.cast(pc.greater(flights["arr_delay"], LATE_MINUTES), pa.int64())
    return (
        flights.select(PLANNED)
        .append_column("date", pc.binary_join_element_wise(*digits, "-"))
        .append_column("late", late)
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(
            "usage: prepare.py FLIGHTS.csv[.gz] OUTPUT.parquet (or .csv)",
            file=sys.stderr,
        )
        return 2
    source, output = arguments
    try:
        table = prepare(csv.read_csv(source))
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        print(f"error: {source} is not the table of flights: {error}", file=sys.stderr)
        return 2
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    write = csv.write_csv if output.endswith(".csv") else parquet.write_table
    # Renamed once it is whole, so that no run takes half a table for the table.
    write(table, f"{output}.part")
    os.replace(f"{output}.part", output)
    print(f"{output}: {table.num_rows:,} flights")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
