"""The tables of the parser, kept beside the grammar that they were made from.

Making them takes as long as a hundred queries, and the first query of every process would pay for it. The file is
derived: it names the grammar and the version of Lark it was made from, and whoever finds another there makes the
tables anew in memory, with the same result. `python -m omnigraph.query.text.parse_tables` writes it.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

GRAMMAR = Path(__file__).with_name("grammar.lark")
KEPT = Path(__file__).with_name("grammar.tables")
STARTS = ("query", "broken")


def load_parser(transformer: Any) -> Lark:
    """The parser of the grammar, from the kept tables if they are its own."""
    from lark import Lark

    if KEPT.is_file():
        made_from, data, memo = pickle.loads(zlib.decompress(KEPT.read_bytes()))
        if made_from == origin():
            # As the stand-alone parsers do that Lark writes.
            # mypy does not see: not typed by the library.
            parser: Lark = Lark._load_from_dict(data, memo, transformer=transformer)  # type: ignore[no-untyped-call]
            return parser
    return make_parser(transformer)


def make_parser(transformer: Any | None) -> Lark:
    """The parser, its tables made from the grammar."""
    from lark import Lark

    return Lark(_grammar(), parser="lalr", lexer="basic", start=list(STARTS), transformer=transformer)


def origin() -> str:
    """What tables are made from: the grammar, and the program that makes them."""
    import lark

    told = f"lark {lark.__version__}\n{STARTS}\n{_grammar()}"
    return hashlib.sha256(told.encode()).hexdigest()


@cache
def _grammar() -> str:
    return GRAMMAR.read_text(encoding="utf-8")


def write_tables(path: Path) -> None:
    """Make the tables and keep them in a file."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = make_parser(None).memo_serialize([TerminalDef, Rule])
    path.write_bytes(zlib.compress(pickle.dumps((origin(), data, memo), protocol=4), 9))


if __name__ == "__main__":
    write_tables(KEPT)
