"""The kept tables of the parser are those of its grammar, and nothing but time depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.query.text import parse_tables, tokens
from omnigraph.query.text.build import SyntaxBuilder
from omnigraph.query.text.parse import parse_tolerantly

TEXT = """
query a($q: Vector(4), $n: I32?) @description("d") {
  match { $x: Doc { name: "n" }  $x cites{1,3} $y  not { $y cites $x }  $y.age >= $n and not search($y.text, "w") }
  return { $x.name, count($y) as n } order { rrf(nearest($x.v, $q), bm25($x.text, "w")), n desc } limit 3 }
query b() { update Doc set { age: 3 } where name = "x" }
query broken( { match
"""


def test_the_kept_tables_were_made_from_this_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    def unkept(transformer: object) -> None:
        raise AssertionError("grammar.tables is out of date: run `python -m omnigraph.query.text.parse_tables`")

    monkeypatch.setattr(parse_tables, "make_parser", unkept)
    assert parse_tables.load_parser(SyntaxBuilder()) is not None


def test_kept_and_fresh_tables_read_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = parse_tolerantly(TEXT)
    assert [query.name.text for query in kept.queries] == ["a", "b"]
    assert kept.broken
    fresh = parse_tables.make_parser(SyntaxBuilder())
    monkeypatch.setattr("omnigraph.query.text.parse.parser", lambda: fresh)
    monkeypatch.setattr(tokens, "parser", lambda: fresh)
    assert parse_tolerantly(TEXT) == kept


def test_tables_of_another_grammar_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stale = tmp_path / "stale.tables"
    monkeypatch.setattr(parse_tables, "origin", lambda: "another grammar")
    parse_tables.write_tables(stale)
    monkeypatch.undo()
    monkeypatch.setattr(parse_tables, "KEPT", stale)
    made = []
    monkeypatch.setattr(parse_tables, "make_parser", made.append)
    parse_tables.load_parser(None)
    monkeypatch.setattr(parse_tables, "KEPT", tmp_path / "missing.tables")
    parse_tables.load_parser(None)
    assert len(made) == 2
