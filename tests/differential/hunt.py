"""The loop: worlds, queries on each of their states, answers compared, what was made counted."""

from __future__ import annotations

import datetime
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from tests.differential import constructs, tree
from tests.differential.compare import difference
from tests.differential.making import QueryMaker
from tests.differential.oracle import Oracle, Rows
from tests.differential.product import WAYS, Answer, Product, running
from tests.differential.rows import World
from tests.differential.world import Making

assert constructs.__all__
MOST_ROWS = 400
"""Larger results say no more and take their time."""
NOT_YET: frozenset[str] = frozenset()
"""Constructs of the page that the product does not have yet."""
WHEN_ASKED = frozenset({"wide_groups", "aggregate_of_a_value"})
"""Constructs that are made only in a hunt for groups: the samples of the suite stay what they are."""
NO_VALUE = (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException)
"""What DuckDB raises where a value does not fit or divides by zero. Which rows get that far is the engine's choice."""
NO_VALUE_WORDS = re.compile("BadRequest: (a (result|number|moment) (that|outside)|division by zero)")
"""What the product says of such a value. It may meet one in rows that DuckDB need not look at, and the other way round:
in worlds whose values lie that far out, this is no difference."""
EMPTY_SHARE = 0.25
"""How many of the queries that find nothing are asked all the same."""


@dataclass(frozen=True)
class Found:
    """A difference: everything that is needed to see it again."""

    seed: int
    number: int
    world: World
    query: tree.Query
    way: str
    kind: str
    expected: Rows
    answer: Answer


@dataclass
class Coverage:
    """What was made and asked."""

    queries: int = 0
    answers: int = 0
    with_rows: int = 0
    rows: int = 0
    refused: int = 0
    failing: int = 0
    further: int = 0
    made: Counter[str] = field(default_factory=Counter)

    def report(self) -> str:
        """In words."""
        share = 100 * self.with_rows / max(1, self.queries)
        lines = [
            f"{self.queries} queries, {self.answers} answers, {share:.0f} % with rows, {self.rows} rows, "
            f"{self.refused} larger ones and {self.failing} without a value left out, "
            f"{self.further} without one only in the product"
        ]
        lines += [f"{count:7} {name}" for name, count in sorted(self.made.items(), key=lambda each: -each[1])]
        return "\n".join(lines)


@dataclass(frozen=True)
class Options:
    """How much is asked, and what is left out."""

    queries_per_state: int = 30
    without: frozenset[str] = NOT_YET | WHEN_ASKED
    ways: tuple[str, ...] = WAYS
    spark_per_state: int = 0
    looking_back: int = 2
    """Queries on each older state, asked by its commit when the graph has gone on."""
    until: float = float("inf")
    every_way: bool = True
    """Whether each query is asked in all ways, or in one of them after the other."""


def hunt(seed: int, options: Options, coverage: Coverage) -> Iterator[Found]:
    """The differences on one random graph."""
    rng = random.Random(seed)
    states = Making(rng, interfaces="interfaces" not in options.without).states()
    with running(World(states[0].schema)) as product:
        number = 0
        for world, back in [*((each, False) for each in states), *((each, True) for each in states[:-1])]:
            if back:
                product.look_back(world)
            else:
                product.reach(world)
            oracle = Oracle(world.schema, world.tables())
            for at in range(options.looking_back if back else options.queries_per_state):
                if time.monotonic() > options.until:
                    return
                number += 1
                own = random.Random(f"{seed}/{number}")
                asked = ask(own, world, oracle, options, coverage)
                if asked is None:
                    continue
                query, expected = asked
                spark = ("spark",) if at < options.spark_per_state else ()
                ways = options.ways if options.every_way else (options.ways[number % len(options.ways)],)
                yield from differing(seed, number, world, product, query, expected, (*ways, *spark), coverage)


def ask(
    rng: random.Random, world: World, oracle: Oracle, options: Options, coverage: Coverage
) -> tuple[tree.Query, Rows] | None:
    """A query and the answer of the oracle. Not asked are most that find nothing, and all that find very much."""
    maker = QueryMaker(rng, world.schema, oracle.tables, options.without)
    for _ in range(6):
        query = maker.query()
        try:
            expected = oracle.ask(query)
        except NO_VALUE:
            coverage.failing += 1
            continue
        if len(expected) > MOST_ROWS:
            coverage.refused += 1
            continue
        if expected or rng.random() < EMPTY_SHARE:
            coverage.queries += 1
            coverage.with_rows += bool(expected)
            coverage.rows += len(expected)
            coverage.made.update(maker.used.keys())
            return query, expected
    return None


def is_wide(world: World) -> bool:
    """Whether a value is so large, or so close to the first and the last year, that a step leads out of its type."""
    rows = [row for rows in world.tables().values() for row in rows.values()]
    return any(_is_far(value) for row in rows for value in dict(row.values).values())


def _is_far(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return not 100 < value.year < 9900
    return isinstance(value, int | float) and not abs(value) < 2.0**31


def steps_apart(node: Any) -> int:
    """How far floats of the answer may be apart."""
    if isinstance(node, tuple):
        return max(map(steps_apart, node), default=0)
    own = getattr(node, "rounded", 0) if isinstance(node, tree.Expr) else 0
    inside = vars(node).values() if isinstance(node, tree.Expr | tree.Column | tree.Query | tree.Stage) else ()
    return max([own, *(steps_apart(each) for each in inside)])


def differing(
    seed: int,
    number: int,
    world: World,
    product: Product,
    query: tree.Query,
    expected: Rows,
    ways: tuple[str, ...],
    coverage: Coverage,
) -> Iterator[Found]:
    """The first way to run the query whose answer differs."""
    for way in ways:
        answer = product.ask(query, way)
        coverage.answers += 1
        kind = difference(expected, answer, steps_apart(query))
        if kind is not None and answer.rows is None and NO_VALUE_WORDS.search(str(answer.error)) and is_wide(world):
            coverage.further += 1
            return
        if kind is not None:
            yield Found(seed, number, world, query, way, kind, expected, answer)
            return
