"""Asking one small graph one question, in both traversal modes, held against the reference as well."""

from __future__ import annotations

from typing import Any

from omnigraph.config import override
from omnigraph.embed.mock import MockEmbeddings
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.result.result import Result
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from omnigraph.schema.catalog import Catalog
from tests.read.graphs import CATALOG, Database, arrow_tables

MODES = ("csr", "indexed", None)


def person(name: str, **values: Any) -> dict[str, Any]:
    """A Person row; what is not given is null."""
    names = ("age", "score", "rate", "level", "tags", "born", "seen", "bio", "big", "spot")
    return {"id": name, "name": name, "active": True, **dict.fromkeys(names), **values}


def graph(
    people: list[dict[str, Any]] | str = (),
    knows: list[tuple] | str = (),
    teams: list[str] | str = (),
    member_of: list[tuple] = (),
    part_of: list[tuple] = (),
) -> Database:
    """A database. People and teams may be given by name alone, edges as (source, target[, properties])."""

    def edges(prefix: str, pairs: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
        found = [pair if isinstance(pair, tuple) else (pair[0], pair[1]) for pair in pairs]
        return [
            {"id": f"{prefix}{at}", "src": pair[0], "dst": pair[1], **dict.fromkeys(names), **(pair[2:] or ({},))[0]}
            for at, pair in enumerate(found)
        ]

    people = people.split() if isinstance(people, str) else people
    knows = knows.split() if isinstance(knows, str) else knows
    return {
        "node:Person": [person(each) if isinstance(each, str) else each for each in people],
        "node:Team": [
            {"id": t, "title": t, "size": None} for t in (teams.split() if isinstance(teams, str) else teams)
        ],
        "edge:Knows": edges("k", knows, ("since", "note")),
        "edge:MemberOf": edges("m", member_of, ("role",)),
        "edge:PartOf": edges("p", part_of, ()),
    }


def run(database: Database, text: str, mode: str | None = None, catalog: Catalog = CATALOG, **options: Any) -> Result:
    """The result of one query. `params` may be among the options."""
    compiled = compile_query(text if text.startswith("query") else f"query q() {{ {text} }}", catalog)
    with override(traversal_mode=mode):
        reader = ArrowTables(arrow_tables(database, catalog))
        return run_on(reader, catalog, ReadCaches(), compiled, options.pop("params", None), **options)


def ask(database: Database, text: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of one query: the same in every mode."""
    options.setdefault("provider", MockEmbeddings())
    answers = [run(database, text, mode, **dict(options)).rows() for mode in MODES]
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def values(rows: list[dict[str, Any]]) -> list[Any]:
    """Rows of one column as a plain list, of several as tuples."""
    return [next(iter(row.values())) if len(row) == 1 else tuple(row.values()) for row in rows]
