"""Parts of static HTML pages, for browsers without a network.

All values come from data, so none is trusted: every text is escaped, nothing is a
link, and a page's own policy forbids scripts and any loading.
"""

from __future__ import annotations

import html
import math
import string
from collections.abc import Iterable, Mapping, Sequence

_LONGEST = 200
_CHART = (380, 160)
_PALETTE = ("#4878a8", "#d08040", "#50a060", "#a05090")
_PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
body {font: 14px sans-serif; margin: 2em; max-width: 60em}
table {border-collapse: collapse; margin: .5em 0}
td, th {padding: .15em .8em; text-align: right; border-bottom: 1px solid #ddd}
td:first-child, th:first-child, td.text {text-align: left; overflow-wrap: anywhere}
section {border-top: 2px solid #888; margin-top: 1.5em}
rect {fill: #4878a8}
polyline {fill: none; stroke-width: 1.5}
svg.chart {border: 1px solid #ddd; margin: .3em}
.charts {display: flex; flex-wrap: wrap; gap: 1em}
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


def text(value: object) -> str:
    """Escapes a value of whatever origin, cut to what fits a page."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    if len(shown) > _LONGEST:
        shown = shown[:_LONGEST] + "..."
    return html.escape(shown, quote=True)


def number(value: float) -> str:
    return f"{value:,.6g}"


def table(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    def line(cells: tuple[object, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{text(c)}</{tag}>" for c in cells) + "</tr>"

    lines = [line(header, "th"), *(line(row, "td") for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


Points = Sequence[tuple[float, float]]


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def chart(
    title: str,
    lines: Mapping[str, Points],
    x: str,
    unit: tuple[float, float] | None = None,
) -> str:
    """Returns lines in one picture, as SVG with the ends of both axes.

    Args:
      title: What is drawn.
      lines: Points (x, y) by the line's name; what is not finite is left out.
      x: What the horizontal axis is.
      unit: The range of both axes; by default that of the points.
    """
    finite = {
        name: [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])]
        for name, points in lines.items()
    }
    shown = {name: points for name, points in finite.items() if points}
    if not shown:
        return ""
    together = [point for points in shown.values() for point in points]
    heights = [point[1] for point in together]
    # The line of a constant stands in the middle of a range that means nothing.
    ends = unit or (min(heights), max(heights))
    left, right = unit or _range([point[0] for point in together])
    low, high = unit or _range(heights)
    drawn, legend = [], []
    for place, (name, points) in enumerate(shown.items()):
        colour = _PALETTE[place % len(_PALETTE)]
        places = " ".join(
            f"{_CHART[0] * (a - left) / (right - left):.1f},"
            f"{_CHART[1] * (high - b) / (high - low):.1f}"
            for a, b in points
        )
        # A line of a single point would not be seen.
        drawn.append(
            f'<polyline points="{places}" stroke="{colour}"/>'
            if len(points) > 1
            else f'<circle cx="{places.split(",")[0]}" cy="{places.split(",")[1]}"'
            f' r="2.5" fill="{colour}"/>'
        )
        legend.append(f'<span style="color:{colour}">{text(name)}</span>')
    return (
        f"<div><b>{text(title)}</b> {' '.join(legend)}<br>"
        f'<svg class="chart" width="{_CHART[0]}" height="{_CHART[1]}" role="img">'
        f"{''.join(drawn)}</svg>"
        f"<div>{text(x)} {number(left)} to {number(right)};"
        f" {number(ends[0])} to {number(ends[1])}</div></div>"
    )


def page(title: str, body: Iterable[str]) -> str:
    """Returns a whole page.

    Args:
      title: Of whatever origin.
      body: HTML.
    """
    return _PAGE.substitute(title=text(title), body="\n".join(body))
