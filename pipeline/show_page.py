"""A dataset as one static HTML page."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator

import numpy as np

from pipeline import dataset as datasets
from pipeline import pages
from pipeline.dataset import Dataset
from pipeline.preprocess import accumulators
from pipeline.preprocess.statistics import ColumnStatistics
from pipeline.preprocess.statistics_proto import equal_width_histogram

_BARS = 20
_TOP = 10
_REJECTS = 20
_WIDTH, _HEIGHT = 400, 80


def _histogram(column: ColumnStatistics) -> str:
    """Returns the numbers' histogram as SVG; a bar's tooltip has its range."""
    edges, counts = equal_width_histogram(column, _BARS)
    highest = counts.max()
    step = _WIDTH / len(counts)
    bars = []
    for place, count in enumerate(counts.tolist()):
        height = _HEIGHT * count / highest
        bars.append(
            f'<rect x="{place * step:.1f}" y="{_HEIGHT - height:.1f}"'
            f' width="{step - 1:.1f}" height="{height:.1f}"><title>'
            f"{pages.number(edges[place])} to {pages.number(edges[place + 1])}: {count:,.0f}"
            "</title></rect>"
        )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img">{"".join(bars)}</svg>'
        f"<div>{pages.number(edges[0])} to {pages.number(edges[-1])}</div>"
    )


def _top_values(column: ColumnStatistics) -> str:
    lines = []
    for value, count in column.values.most_frequent(_TOP):
        width = _WIDTH * count / max(column.present, 1)
        lines.append(
            f'<tr><td class="text">{pages.text(value)}</td><td>{count:,}</td><td class="text">'
            f'<svg width="{_WIDTH}" height="12"><rect width="{width:.1f}" height="12">'
            "</rect></svg></td></tr>"
        )
    more = "at least " if column.values.truncated else ""
    return (
        f"<div>{more}{column.values.distinct:,} different values, the most frequent:"
        "</div>\n<table>\n" + "\n".join(lines) + "\n</table>"
    )


def _column(name: str, column: ColumnStatistics) -> Iterator[str]:
    yield f"<section><h3>{pages.text(name)} <small>{column.type.value}</small></h3>"
    share = f" ({column.missing / column.count:.1%})" if column.count else ""
    facts = [("missing", f"{column.missing:,}{share}")]
    if column.id_buckets is not None:
        facts.append(("ids out of range", f"{column.outside:,}"))
    if column.are_dates:
        facts.append(("no dates", f"{column.outside:,}"))
    if column.points.total:
        quartiles = column.points.quantiles(np.arange(5) / 4).tolist()
        facts += [
            ("mean", pages.number(column.moments.mean)),
            ("standard deviation", pages.number(column.moments.variance**0.5)),
            ("zeros", f"{column.zeros:,}"),
            ("min, quartiles, max", ", ".join(map(pages.number, quartiles))),
        ]
    yield pages.table(("", "all rows"), iter(facts))
    if column.points.total:
        yield _histogram(column)
    if column.values is not None and column.present:
        yield _top_values(column)
    yield "</section>"


def _rejects(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8") as f:
        first = [json.loads(line) for line in itertools.islice(f, _REJECTS)]
    if first:
        yield f"<h2>First {len(first)} rejected rows</h2>"
        rows = ((r["file"], r["line"], r["reason"], r["text"]) for r in first)
        yield pages.table(("file", "line", "reason", "row"), rows)


def body(dataset: Dataset) -> Iterator[str]:
    """Yields what a page says about a dataset, as HTML."""
    results = dataset.manifest.results
    written = results["rows_written"]
    yield (
        f"<p>Finished {pages.text(dataset.manifest.finished)}. Rows read"
        f" {results['rows_read']:,} = written {sum(written.values()):,} + rejected"
        f" {results['rows_rejected']:,}.</p>"
    )
    yield "<h2>Splits</h2>"
    yield pages.table(("split", "rows"), ((s, f"{n:,}") for s, n in written.items()))
    if results["rejected_by_column"]:
        yield "<h2>Rejected rows</h2>"
        yield pages.table(
            ("column", "rows", "first reason"),
            (
                (column or "the row as a whole", n, results["first_reason"][column])
                for column, n in results["rejected_by_column"].items()
            ),
        )
    yield "<h2>Columns</h2>"
    path = os.path.join(dataset.directory, datasets.ACCUMULATORS_FILE)
    for name, column in accumulators.read(path).all_rows().items():
        yield from _column(name, column)
    yield from _rejects(os.path.join(dataset.directory, datasets.REJECTS_FILE))


def render(directory: str) -> str:
    """Returns the page about a dataset.

    Raises:
      UserError: There is no finished dataset, or a file of it is damaged.
    """
    return pages.page(f"Dataset {directory}", body(datasets.open_dataset(directory)))
