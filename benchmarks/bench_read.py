"""Reads side by side with DuckDB over the same Arrow data and with an embedded graph database, in one process.

All three answer the same question with the same rows; every answer is compared before it is timed. Times are end to
end in Python, warm: text in, Arrow out.

python -m benchmarks.bench_read [--only optional group-by]   the comparisons whose names hold one of these
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import ladybug
import numpy as np
import pyarrow as pa

import omnigraph as og

from .harness import Row, markdown, measure

NODES = 100_000
EDGES = 1_000_000
DIM = 64
VOCABULARY = 5_000

SCHEMA = f"""
node Person {{
    name: String @key
    age: I32
    city: String
    cohort: I32
    bio: String @index
    spot: Vector({DIM})
}}
edge Knows: Person -> Person {{ weight: F64 }}
"""

AHEAD = "ahead"
AGGREGATION = "ahead of DuckDB, within 1.2 times of the graph database"
DISTINCT = "within 1.5 times of DuckDB"


class Setting:
    """The same graph in all three engines."""

    def __init__(self, path: Path, nodes: int = NODES, edges: int = EDGES) -> None:
        random = np.random.default_rng(7)
        names = np.array([f"p{number:07d}" for number in range(nodes)])
        words = np.array([f"w{number}" for number in range(VOCABULARY)])
        picks = np.minimum(random.zipf(1.3, size=(nodes, 12)) - 1, VOCABULARY - 1)
        vectors = random.standard_normal((nodes, DIM)).astype(np.float32)
        self.people = pa.table(
            {
                "name": names,
                "age": pa.array(random.integers(0, 90, nodes), pa.int32()),
                "city": pa.array([f"city {number}" for number in random.integers(0, 50, nodes)]),
                "cohort": pa.array(random.integers(0, 10, nodes), pa.int32()),
                "bio": pa.array([" ".join(row) for row in words[picks]]),
                "spot": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM),
            }
        )
        self.knows = pa.table(
            {
                "src": names[random.integers(0, nodes, edges)],
                "dst": names[random.integers(0, nodes, edges)],
                "weight": random.random(edges),
            }
        )
        self.start = str(names[nodes // 2])
        self.query_vector = [float(value) for value in vectors[0]]
        self.graph = og.init(path / "graph", schema=SCHEMA)
        self.graph.load(self.people, mode="append", type="Person")
        self.graph.load(self.knows, mode="append", type="Knows", src="src", dst="dst")
        if hasattr(self.graph, "ensure_indices"):
            self.graph.ensure_indices()
        self.duck = duckdb.connect()
        self.duck.register("people", self.people)
        self.duck.register("knows", self.knows)
        self._index_texts_in_duckdb()
        self.bug = ladybug.Connection(ladybug.Database(str(path / "bug")))
        self._load_ladybug()

    def _index_texts_in_duckdb(self) -> None:
        """The tables that a full-text extension keeps: which token is in which text, how often."""
        self.duck.execute(
            "create table postings as select token, name, count(*) as tf from "
            "(select name, unnest(string_split(bio, ' ')) as token from people) group by all order by token"
        )
        self.duck.execute("create table lengths as select name, sum(tf) as size from postings group by name")

    def _load_ladybug(self) -> None:
        people, knows = self.people, self.knows  # noqa: F841 - found by name below
        self.bug.execute(
            f"CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT32, city STRING, cohort INT32, bio STRING, "
            f"spot FLOAT[{DIM}])"
        )
        self.bug.execute("CREATE REL TABLE Knows(FROM Person TO Person, weight DOUBLE)")
        self.bug.execute("COPY Person FROM people")
        self.bug.execute("COPY Knows FROM knows")

    def ours(self, text: str, **params: Any) -> pa.Table:
        return self.graph.query(text, params=params).to_arrow()

    def theirs(self, text: str, **params: Any) -> pa.Table:
        return self.duck.sql(text, params=params).to_arrow_table()

    def graph_database(self, text: str, **params: Any) -> pa.Table:
        return self.bug.execute(text, params).get_as_arrow()


def within(hops: int) -> str:
    """DuckDB: the nodes within so many hops of one node."""
    parts = ["h1 as (select distinct dst from knows where src = $name)"]
    parts += [
        f"h{n} as (select distinct k.dst from knows k join h{n - 1} h on k.src = h.dst)" for n in range(2, hops + 1)
    ]
    union = " union ".join(f"select dst from h{n}" for n in range(1, hops + 1))
    return f"with {', '.join(parts)} select dst from ({union}) where dst <> $name order by dst"


def bm25_sql(tokens: list[str], count: int) -> str:
    """DuckDB: BM25 over its own postings tables."""
    wanted = ", ".join(f"'{token}'" for token in tokens)
    return f"""
        with stats as (select count(*) as n, avg(size) as average from lengths),
        terms as (
            select token, name, tf, count(*) over (partition by token) as df from postings where token in ({wanted})
        )
        select name, sum(ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2
               / (tf + 1.2 * (0.25 + 0.75 * size / average))) as score
        from terms join lengths using (name), stats group by name order by score desc, name limit {count}"""


Case = tuple[str, Callable[[], Any], Callable[[], Any] | None, Callable[[], Any] | None, str]


def hop_case(s: Setting, hops: int) -> Case:
    """The nodes within so many hops of one node."""
    ours = (
        f"query q($n: String) {{ match {{ $p: Person {{ name: $n }}  $p knows{{1,{hops}}} $q }} return {{ $q.name }} }}"
    )
    theirs = (
        f"MATCH (p:Person {{name: $name}})-[:Knows* SHORTEST 1..{hops}]->(q:Person) "
        "RETURN DISTINCT q.name AS n ORDER BY n"
    )
    return (
        f"{hops}-hop from one node",
        lambda: s.ours(ours, n=s.start),
        lambda: s.theirs(within(hops), name=s.start),
        lambda: s.graph_database(theirs, name=s.start),
        AHEAD,
    )


def cases(s: Setting) -> list[Case]:
    """(name, ours, DuckDB, the graph database, goal)."""
    name = s.start
    found: list[Case] = [
        (
            "point read by key",
            lambda: s.ours(
                "query q($n: String) { match { $p: Person { name: $n } } return { $p.age, $p.city } }", n=name
            ),
            lambda: s.theirs("select age, city from people where name = $name", name=name),
            lambda: s.graph_database("MATCH (p:Person {name: $name}) RETURN p.age, p.city", name=name),
            "under 3 ms",
        )
    ]
    found += [hop_case(s, hops) for hops in (1, 2, 3)]
    found += [
        (
            "2-hop from 10 000 nodes",
            lambda: s.ours(
                "query q() { match { $p: Person { cohort: 3 }  $p knows{1,2} $q } return { count($q) as n } }"
            ),
            lambda: s.theirs(
                "with h1 as "
                "(select distinct src as p, dst as q from knows join people on src = name where cohort = 3), "
                "h2 as (select h1.p, k.dst as q from h1 join knows k on k.src = h1.q) "
                "select count(*) from (select p, q from h1 where p <> q union select p, q from h2 where p <> q)"
            ),
            lambda: s.graph_database(
                "MATCH (p:Person)-[:Knows* SHORTEST 1..2]->(q:Person) WHERE p.cohort = 3 RETURN count(*)"
            ),
            AHEAD,
        ),
        (
            "group-by over all edges",
            lambda: s.ours(
                "query q() { match { $a: Person  $a $w:knows $b } "
                "return { $a.city, count($w) as n, avg($w.weight) as mean } }"
            ),
            lambda: s.theirs(
                "select city, count(*), avg(weight) from knows join people on src = name group by city order by city"
            ),
            lambda: s.graph_database(
                "MATCH (a:Person)-[w:Knows]->(b:Person) RETURN a.city AS c, count(*), avg(w.weight) ORDER BY c"
            ),
            AGGREGATION,
        ),
        (
            "count(distinct …) over all edges",
            lambda: s.ours(
                "query q() { match { $a: Person  $a $w:knows $b } return { $a.city, count(distinct $b.age) as n } }"
            ),
            lambda: s.theirs(
                "select p.city, count(distinct q.age) from knows join people p on src = p.name "
                "join people q on dst = q.name group by p.city order by p.city"
            ),
            lambda: s.graph_database(
                "MATCH (a:Person)-[w:Knows]->(b:Person) RETURN a.city AS c, count(DISTINCT b.age) ORDER BY c"
            ),
            DISTINCT,
        ),
        (
            "collect over all edges",
            lambda: s.ours(
                "query q() { match { $a: Person  $a $w:knows $b } return { $a.city, collect($w.weight) as all } }"
            ),
            lambda: s.theirs(
                "select city, list(weight) from knows join people on src = name group by city order by city"
            ),
            lambda: s.graph_database(
                "MATCH (a:Person)-[w:Knows]->(b:Person) RETURN a.city AS c, collect(w.weight) ORDER BY c"
            ),
            DISTINCT,
        ),
        (
            "optional",
            lambda: s.ours("query q() { match { $p: Person  optional { $p knows $x } } return { count($x) as n } }"),
            lambda: s.theirs(
                "select count(dst) from people left join (select distinct src, dst from knows) on src = name"
            ),
            lambda: s.graph_database(
                "MATCH (p:Person) OPTIONAL MATCH (p)-[:Knows]->(x:Person) WITH DISTINCT p, x RETURN count(x)"
            ),
            AHEAD,
        ),
        (
            "exists",
            lambda: s.ours(
                "query q() { match { $p: Person  exists { $p knows $x  $x.age > 30 } } return { count($p) as n } }"
            ),
            lambda: s.theirs(
                "select count(*) from people p where exists "
                "(select 1 from knows join people x on dst = x.name where src = p.name and x.age > 30)"
            ),
            lambda: s.graph_database(
                "MATCH (p:Person) WHERE EXISTS { MATCH (p)-[:Knows]->(x:Person) WHERE x.age > 30 } RETURN count(*)"
            ),
            AHEAD,
        ),
        (
            "a page by key, from row 5 000 on",
            lambda: s.ours(
                "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } offset 5000 limit 20 }"
            ),
            lambda: s.theirs("select name, age from people order by name limit 20 offset 5000"),
            lambda: s.graph_database("MATCH (p:Person) RETURN p.name AS n, p.age ORDER BY n SKIP 5000 LIMIT 20"),
            AHEAD,
        ),
        (
            "a product with a limit",
            lambda: s.ours(
                "query q() { match { $p: Person { cohort: 3 }  $q: Person { age: 3 } } "
                "return { $p.name as p, $q.name as q } limit 10 }"
            ),
            # Not of all people with all people: the other engine makes every pair before it takes the first ten.
            lambda: s.theirs(
                "select p.name as p, q.name as q from people p, people q "
                "where p.cohort = 3 and q.age = 3 order by p, q limit 10"
            ),
            None,
            AHEAD,
        ),
        (
            "anti-join",
            lambda: s.ours(
                'query q() { match { $p: Person  not { $p knows $x  $x.city = "city 7" } } return { count($p) as n } }'
            ),
            lambda: s.theirs(
                "select count(*) from people p where not exists "
                "(select 1 from knows join people x on dst = x.name where src = p.name and x.city = 'city 7')"
            ),
            lambda: s.graph_database(
                "MATCH (p:Person) WHERE NOT EXISTS { MATCH (p)-[:Knows]->(x:Person) WHERE x.city = 'city 7' } "
                "RETURN count(*)"
            ),
            AHEAD,
        ),
        (
            "filtered vector top-10",
            lambda: s.ours(
                f"query q($v: Vector({DIM})) {{ match {{ $p: Person {{ cohort: 3 }} }} return {{ $p.name }} "
                "order { nearest($p.spot, $v) } limit 10 }",
                v=s.query_vector,
            ),
            lambda: s.theirs(
                "select name from people where cohort = 3 "
                f"order by array_cosine_distance(spot, $v::float[{DIM}]), name limit 10",
                v=s.query_vector,
            ),
            lambda: s.graph_database(
                f"MATCH (p:Person) WHERE p.cohort = 3 RETURN p.name AS n "
                f"ORDER BY array_cosine_similarity(p.spot, CAST($v AS FLOAT[{DIM}])) DESC, n LIMIT 10",
                v=s.query_vector,
            ),
            AHEAD,
        ),
        (
            "BM25 top-10",
            lambda: s.ours(
                'query q() { match { $p: Person  search($p.bio, "w40 w300 w2000") } return { $p.name } '
                'order { bm25($p.bio, "w40 w300 w2000") desc } limit 10 }'
            ),
            lambda: s.theirs(bm25_sql(["w40", "w300", "w2000"], 10)),
            None,
            AHEAD,
        ),
    ]
    return found


def beside_itself(s: Setting) -> list[Case]:
    """Clauses beside what they stand for, both of our own: (name, the clause, what it stands for, nothing, goal)."""

    def asked(match: str, value: str) -> Callable[[], pa.Table]:
        text = f"query q() {{ match {{ $p: Person  {match} }} return {{ {value} as n }} }}"
        return lambda: s.ours(text)

    optional, join = asked("optional { $p knows $x }", "sum($x.age)"), asked("$p knows $x", "sum($x.age)")
    exists, every = asked("exists { $p knows{1,2} $x }", "count($p)"), asked("$p knows{1,2} $x", "count(distinct $p)")
    return [
        ("optional: the join that it is", optional, join, None, "no more than the join"),
        ("exists over 1 to 2 hops: all of its matches", exists, every, None, "a part of them"),
    ]


def check_equal(name: str, ours: pa.Table, theirs: pa.Table) -> None:
    """The first column of both answers agrees: a comparison of different answers says nothing."""
    one, two = ours.column(0).to_pylist(), theirs.column(0).to_pylist()
    if one != two:
        raise AssertionError(f"{name}: the answers differ: {one[:5]} … ({len(one)}), {two[:5]} … ({len(two)})")


def run(nodes: int = NODES, edges: int = EDGES, only: Sequence[str] = ()) -> list[Row]:
    """All comparisons, or those whose names hold one of the words."""

    def wanted(found: list[Case]) -> list[Case]:
        return [case for case in found if not only or any(word in case[0] for word in only)]

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as path:
        setting = Setting(Path(path), nodes, edges)
        every, own = wanted(cases(setting)), wanted(beside_itself(setting))
        for _, ours, _, _, _ in [*every, *own]:
            ours()
        for name, ours, duck, bug, goal in every:
            for engine, other in (("DuckDB", duck), ("ladybug", bug)):
                if other is None:
                    continue
                check_equal(f"{name}, {engine}", ours(), other())
                rows.append(measure(f"{name}: {engine}", ours, other, goal))
        for name, ours, other, _, goal in own:
            assert other is not None
            check_equal(name, ours(), other())
            rows.append(measure(name, ours, other, goal))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_read")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--edges", type=int, default=EDGES)
    given = parser.parse_args()
    print(markdown(run(given.nodes, given.edges, given.only)))
