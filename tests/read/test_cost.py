"""What a query reads, counted: no more than its answer needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.config import override
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.operators import product
from omnigraph.read.result.result import Result
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from tests.read.asking import graph, person, run
from tests.read.graphs import CATALOG, Database, arrow_tables


class Counted(ArrowTables):
    """Tables that count the values that are read of each column, and the look-ups in each table."""

    def __init__(self, database: Database) -> None:
        super().__init__(arrow_tables(database, CATALOG))
        self.values: Counter[str] = Counter()
        self.lookups: Counter[str] = Counter()

    def scan(self, table_key: str, columns: Sequence[str], predicate: Any = None) -> pa.Table:
        return self._noted(super().scan(table_key, columns, predicate))

    def lookup(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        self.lookups[table_key] += 1
        return self._noted(super().lookup(table_key, column, values, columns))

    def take(self, table_key: str, rows: Any, columns: Sequence[str]) -> pa.Table:
        return self._noted(super().take(table_key, rows, columns))

    def _noted(self, table: pa.Table) -> pa.Table:
        for name in table.column_names:
            self.values[name] += table.num_rows
        return table


def asked(database: Database, text: str, mode: str | None = None) -> tuple[Result, Counted]:
    tables = Counted(database)
    with override(traversal_mode=mode):
        result = run_on(tables, CATALOG, ReadCaches(), compile_query(f"query q() {{ {text} }}", CATALOG))
    return result, tables


MANY = graph([person(f"p{n:04d}", age=n % 7) for n in range(3000)])


@pytest.mark.parametrize("order", ["order { $p.name }", "order { $p.name desc }", ""])
def test_a_page_in_the_order_of_the_key_reads_the_values_of_its_own_rows_only(order):
    text = f"match {{ $p: Person }} return {{ $p.name, $p.age }} {order} offset 1000 limit 20"
    result, tables = asked(MANY, text)
    names = sorted((f"p{n:04d}" for n in range(3000)), reverse="desc" in order)[1000:1020]
    assert [row["p.name"] for row in result.rows()] == names
    assert tables.values["age"] == 20
    assert tables.values["name"] == 0


def test_a_page_in_another_order_reads_that_column_and_the_values_of_its_own_rows():
    text = "match { $p: Person } return { $p.name, $p.age, $p.bio } order { $p.age, $p.name } offset 10 limit 5"
    result, tables = asked(MANY, text)
    assert [row["p.name"] for row in result.rows()] == [f"p{n:04d}" for n in range(70, 105, 7)]
    assert tables.values["bio"] == 5
    assert tables.values["age"] == 3000


CHAIN = graph([person(f"p{n:02d}", age=n) for n in range(40)], [(f"p{n:02d}", f"p{n + 1:02d}") for n in range(39)])


@pytest.mark.parametrize("block", ["exists", "not"])
@pytest.mark.parametrize(("edge", "values"), [("knows{1,30}", 0), ("knows{1,30}[since is null]", 2)])
def test_a_block_over_several_hops_stops_at_the_first_distance_with_a_match(block, edge, values):
    clauses = f'$p: Person {{ name: "p03" }}  {block} {{ $p {edge} $x  $x.age > $p.age + 1 }}'
    text = f"match {{ {clauses} }} return {{ $p.name }}"
    result, tables = asked(CHAIN, text, "indexed")
    assert len(result) == (1 if block == "exists" else 0)
    # One question for one hop, two for the two hops of the next distance; and those for the values of a condition.
    assert tables.lookups["edge:Knows"] == 3 + values
    followed = [line for line in run(CHAIN, text, "csr").explain().lines if line.name == "expand"]
    assert [line.rows for line in followed] == [2]


def test_a_block_over_several_hops_looks_at_all_distances_where_nothing_matches():
    text = "match { $p: Person  not { $p knows{2,4} $x  $x.age > 38 } } return { count($p) as n }"
    assert run(CHAIN, text, "csr").scalar() == run(CHAIN, text, "indexed").scalar() == 40 - 3


def test_a_product_with_a_limit_makes_the_pairs_that_it_returns(monkeypatch):
    monkeypatch.setattr(product, "STRETCH", 3000)
    text = "match { $p: Person  $q: Person } return { $p.name as p, $q.name as q } limit 10"
    result, _ = asked(MANY, text)
    assert [row["q"] for row in result.rows()] == [f"p{n:04d}" for n in range(10)]
    (joined,) = [line for line in result.explain().lines if "product" in line.name or line.name == "combine"]
    assert joined.rows <= 3000


@pytest.mark.parametrize("columns", ["$p.age, $p.bio", "$p"])
def test_a_scan_that_is_shown_as_a_whole_reads_everything_with_one_question(columns):
    result, tables = asked(CHAIN, f"match {{ $p: Person }} return {{ {columns} }}", "indexed")
    assert len(result) == 40
    assert tables.lookups["node:Person"] == 0
    assert tables.values["age"] == 40


def test_a_condition_on_a_few_reached_nodes_reads_those_alone():
    text = 'match { $p: Person { name: "p03" }  $p knows $x  $x.age > 1 } return { $x.name }'
    result, tables = asked(CHAIN, text, "indexed")
    assert result.scalar() == "p04"
    assert tables.values["age"] == 1
