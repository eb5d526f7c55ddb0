"""What a command says: fitted tables and short sentences for people, one JSON document for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes. With `json` on, stdout carries one document and nothing else."""

    json: bool = False
    quiet: bool = False

    def document(self, data: Any) -> None:
        """Print the JSON document of this command."""
        sys.stdout.write(dump_json(data) + "\n")

    def say(self, text: str) -> None:
        """A sentence about what was done; on stdout for people, dropped for programs."""
        if not self.json:
            console().print(text, markup=False, highlight=False, soft_wrap=True)

    def echo_write(self, text: str) -> None:
        """The one-line echo of what a write will touch, on stderr, dropped by `--quiet`."""
        if not self.json and not self.quiet:
            console(stderr=True).print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "nothing to show") -> None:
        """A fitted table, columns of numbers to the right."""
        if self.json:
            return
        materialised = [[_cell(value) for value in row] for row in rows]
        if not materialised:
            self.say(empty)
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for index, header in enumerate(headers):
            numeric = all(_is_number(row[index]) for row in materialised)
            table.add_column(header, justify="right" if numeric else "left", overflow="fold")
        for row in materialised:
            table.add_row(*(Text(cell) for cell in row))
        console().print(table)


def console(*, stderr: bool = False) -> Console:
    """A console that knows whether it talks to a terminal; off a terminal it never cuts or wraps a line at 80."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 10_000
    return Console(stderr=stderr, width=width, soft_wrap=not stream.isatty())


def dump_json(data: Any) -> str:
    """Indented JSON with stable keys."""
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=_plain).decode()


def _plain(value: Any) -> Any:
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return to_json()
    raise TypeError(f"cannot write a {type(value).__name__} as JSON")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(".", "", 1).replace(",", "").lstrip("-").isdigit()
