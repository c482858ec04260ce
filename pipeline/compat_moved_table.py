"""The table of docs/existing.md, from the rows that `compat_hooks` acts on.

`python -m pipeline.compat_moved_table` prints it; a test compares the page with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline import compat_contrib, compat_moved, compat_moved_names


def lines() -> Iterator[str]:
    """Yields the lines of the tables, in Markdown."""
    yield "| what it was | what it is | gone since |"
    yield "|---|---|---|"
    for row in (
        *compat_moved.ESTIMATORS,
        *compat_moved.MODULES,
        *compat_contrib.MODULES,
    ):
        yield f"| `{row.module}` | `{row.target}` | {row.gone} |"
    for row in (*compat_moved_names.NAMES, *compat_contrib.NAMES):
        names = ", ".join(
            f"`{old}`" if old == new else f"`{old}` (`{new}`)"
            for old, new in row.renamed
        )
        yield f"| {names} of `{row.module}` | in `{row.target}` | {row.gone} |"
    yield ""
    yield "| what it was | what to do | gone since |"
    yield "|---|---|---|"
    for row in (*compat_moved.REMOVED, *compat_contrib.REMOVED):
        yield f"| `{row.name}` | {row.instead} | {row.gone} |"


if __name__ == "__main__":
    print("\n".join(lines()))
