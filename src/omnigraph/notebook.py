"""How values look in a notebook: plain HTML tables, everything escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

MOST_ROWS = 50


def html_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table of the first rows, and how many more there are."""
    shown = [tuple(row) for row in rows]
    out = ["<table>"]
    if caption:
        out.append(f"<caption>{html.escape(caption)}</caption>")
    out.append("<thead><tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in headers) + "</tr></thead><tbody>")
    for row in shown[:MOST_ROWS]:
        cells = ("" if value is None else html.escape(str(value)) for value in row)
        out.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    out.append("</tbody></table>")
    if len(shown) > MOST_ROWS:
        out.append(f"<p>and {len(shown) - MOST_ROWS} more</p>")
    return "".join(out)


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
