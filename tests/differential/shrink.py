"""Makes a difference small: parts of the query, rows, steps and properties go while the difference stays the same."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.differential import tree
from tests.differential.compare import difference
from tests.differential.hunt import Found, steps_apart
from tests.differential.oracle import Oracle
from tests.differential.product import Product, running
from tests.differential.rows import Load, Row, World
from tests.differential.types import Property


def shrink(found: Found, seconds: float = 90) -> Found:
    """The smallest case that was found in the time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        smaller = _smaller_query(found, until)
        smaller = _smaller_world(smaller, until)
        if smaller == found:
            break
        found = smaller
    return found


def again(found: Found, product: Product, oracle: Oracle) -> Found | None:
    """The case with its answers, if it still shows the same difference."""
    try:
        expected = oracle.ask(found.query)
        answer = product.ask(found.query, found.way)
    except Exception:
        return None
    kind = difference(expected, answer, steps_apart(found.query))
    return replace(found, expected=expected, answer=answer) if kind == found.kind else None


def fresh(found: Found) -> Found | None:
    """The same on a graph that is made anew."""
    try:
        with running(found.world) as product:
            return again(found, product, Oracle(found.world.schema, found.world.tables()))
    except Exception:
        return None


def _smaller_query(found: Found, until: float) -> Found:
    with running(found.world) as product:
        oracle = Oracle(found.world.schema, found.world.tables())
        progress = True
        while progress and time.monotonic() < until:
            progress = False
            for query in smaller(found.query):
                if time.monotonic() > until:
                    break
                kept = again(replace(found, query=without_unused(query)), product, oracle)
                if kept is not None:
                    found, progress = kept, True
                    break
    return found


def _smaller_world(found: Found, until: float) -> Found:
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for world in smaller_worlds(found.world):
            if time.monotonic() > until:
                break
            kept = fresh(replace(found, world=world))
            if kept is not None:
                found, progress = kept, True
                break
    return found


# --- queries


def smaller(node: Any) -> Iterator[Any]:
    """The same thing with one part less, or with one part made smaller."""
    if isinstance(node, tuple):
        for at in range(len(node)):
            yield node[:at] + node[at + 1 :]
        for at, each in enumerate(node):
            for less in smaller(each):
                yield (*node[:at], less, *node[at + 1 :])
        return
    if not dataclasses.is_dataclass(node) or isinstance(node, tree.Parameter):
        return
    if isinstance(node, tree.Expr):
        yield from (part for part in parts(node) if part.type == node.type)
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if each.name in OPTIONAL and value is not None:
            yield replace(node, **{each.name: None})
        if value is True and each.init:
            yield replace(node, **{each.name: False})
        if each.name == "bounded" and value:
            yield replace(node, low=1, high=1, bounded=False)
        for less in smaller(value):
            yield replace(node, **{each.name: less})


OPTIONAL = frozenset({"limit", "offset", "having", "where", "edge_var", "condition"})


def parts(node: Any) -> Iterator[tree.Expr]:
    """The expressions directly inside one."""
    for value in vars(node).values():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, tree.Expr):
                yield each


def without_unused(query: tree.Query) -> tree.Query:
    """Without the parameters that nothing names."""
    named: set[str] = set()

    def look(node: Any) -> None:
        if isinstance(node, tree.Param):
            named.add(node.name)
        elif isinstance(node, tuple):
            for each in node:
                look(each)
        elif dataclasses.is_dataclass(node):
            for each in vars(node).values():
                look(each)

    look(query)
    return replace(query, parameters=tuple(each for each in query.parameters if each.name in named))


# --- graphs


def smaller_worlds(world: World) -> Iterator[World]:
    """One load of what is there in the end; steps, rows, types, properties and values less."""
    rows = tuple(row for table in world.tables().values() for row in table.values())
    if len(world.steps) > 1:
        yield replace(world, steps=(Load(rows),))
        for at in range(len(world.steps)):
            yield replace(world, steps=world.steps[:at] + world.steps[at + 1 :])
    loaded = [row for step in world.steps if isinstance(step, Load) for row in step.rows]
    size = len(loaded) // 2
    while size:
        for start in range(0, len(loaded), size):
            yield without_rows(world, loaded[start : start + size])
        size //= 2
    yield from _smaller_schemas(world)


def without_rows(world: World, gone: list[Row]) -> World:
    """Without some rows and the edges that hang on them."""
    nodes = {(row.kind, row.id) for row in gone if row.kind.startswith("node:")}

    def stays(row: Row) -> bool:
        if row in gone:
            return False
        if row.kind.startswith("node:"):
            return True
        edge = world.schema.edge(row.kind.split(":")[1])
        return (f"node:{edge.source}", row.src) not in nodes and (f"node:{edge.target}", row.dst) not in nodes

    steps = tuple(Load(tuple(filter(stays, step.rows))) if isinstance(step, Load) else step for step in world.steps)
    return replace(world, steps=steps)


def _smaller_schemas(world: World) -> Iterator[World]:
    schema = world.schema
    for at in range(len(schema.edges)):
        kind = f"edge:{schema.edges[at].name}"
        yield _only(replace(world, schema=replace(schema, edges=schema.edges[:at] + schema.edges[at + 1 :])), kind)
    for at in range(len(schema.nodes)):
        kind = f"node:{schema.nodes[at].name}"
        yield _only(replace(world, schema=replace(schema, nodes=schema.nodes[:at] + schema.nodes[at + 1 :])), kind)
    for group in ("nodes", "edges"):
        for at, type_ in enumerate(getattr(schema, group)):
            key = type_.key
            for prop in type_.properties:
                if prop.name not in key:
                    yield _without_property(world, group, at, prop)


def _only(world: World, gone: str) -> World:
    steps = tuple(
        Load(tuple(row for row in step.rows if row.kind != gone)) if isinstance(step, Load) else step
        for step in world.steps
    )
    return replace(world, steps=steps)


def _without_property(world: World, group: str, at: int, prop: Property) -> World:
    types = list(getattr(world.schema, group))
    types[at] = replace(types[at], properties=tuple(each for each in types[at].properties if each != prop))
    kind = f"{group[:-1]}:{types[at].name}"

    def less(row: Row) -> Row:
        kept = tuple((name, value) for name, value in row.values if name != prop.name)
        return replace(row, values=kept) if row.kind == kind else row

    steps = tuple(Load(tuple(map(less, step.rows))) if isinstance(step, Load) else step for step in world.steps)
    return World(replace(world.schema, **{group: tuple(types)}), steps)
