"""Random mutations, and whether the product leaves the rows that the model says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential import tree
from tests.differential.compare import same
from tests.differential.constructs.conditions import OPERATORS, Compare, IsNull, Joined
from tests.differential.constructs.forms import bare
from tests.differential.constructs.values import Arithmetic
from tests.differential.hunt import NO_VALUE
from tests.differential.keys import KEY_VALUES, NAMED, key_text
from tests.differential.making import QueryMaker, Scope
from tests.differential.mutations import (
    Insert,
    Mutation,
    Outcome,
    Refused,
    Remove,
    Statement,
    Update,
    arguments,
    outcome,
    text,
)
from tests.differential.oracle import Oracle
from tests.differential.product import Product, running
from tests.differential.rows import Branch, Compact, Index, Load, Row, Tables, World
from tests.differential.types import SINGLE, EdgeType, NodeType, Property, Schema
from tests.differential.world import Making, stored, values_of


@dataclass(frozen=True)
class Wrong:
    """A mutation after which the product is not what it should be."""

    seed: int
    number: int
    world: World
    mutation: Mutation
    expected: str
    found: str

    def __str__(self) -> str:
        rows = [row.record(self.world.schema) for table in self.world.tables().values() for row in table.values()]
        lines = "".join(f"    {row!r},\n" for row in rows)
        return (
            f"# seed {self.seed}, mutation {self.number}\n{self.world.schema.text()}\n[\n{lines}]\n"
            f"{text(self.mutation)}\n{arguments(self.mutation)}\nexpected {self.expected}\nfound    {self.found}"
        )


Lines = dict[str, list[dict[str, Any]]]
"""The rows of each type as a query gives them."""
READS_ONLY = frozenset({"text_search", "search inside"})
"""What a mutation has no use for."""


class MutationMaker(QueryMaker):
    """Makes mutations of one graph."""

    pending: dict[str, list[str]]
    """The keys of nodes that earlier statements insert."""

    def mutation(self) -> Mutation | None:
        """A mutation, or None when there is nothing to change."""
        self.parameters, self.used, self.pending = [], Counter(), {}
        if "match_before" not in self.without and self.chance(0.5):
            return self.matching()
        kinds = [kind for kind in self.tables if self.tables[kind]]
        if not kinds:
            return None
        removing = self.chance(0.2)
        count = self.rng.choice((1, 1, 2, 3))
        made = [self.statement(self.rng.choice(kinds), removing) for _ in range(count)]
        statements = tuple(each for each in made if each is not None)
        if len(statements) > 1:
            self.used["several statements"] += 1
        return Mutation(tuple(self.parameters), (), statements) if statements else None

    def statement(self, kind: str, removing: bool) -> Statement | None:
        """A statement of its own: deletes go with deletes, inserts with updates."""
        if removing:
            return Remove(kind, self.where(kind)) if len(self.tables[kind]) > 2 else None
        if self.chance(0.3):
            return self.insert(kind)
        values = self.assigned(kind, None)
        return Update(kind, values, self.where(kind)) if values else None

    def matching(self) -> Mutation | None:
        """`match { … }` and statements about what it binds."""
        scope = Scope()
        clauses = self.clauses(scope, 1)
        own = Scope(scope.own, scope.own)
        names = own.named()
        var = self.rng.choice(names)
        kind = scope.own[var]
        if kind.startswith("interface:") or "|" in kind:
            return None
        shape = self.rng.random()
        statement: Any
        if shape < 0.25 and len(self.tables[kind]) > 2:
            statement = Remove(kind, var=var)
        elif shape < 0.75:
            values = self.assigned(kind, Scope({var: kind}, {var: kind}) if self.chance(0.7) else own)
            statement = Update(kind, values, var=var) if values else None
        else:
            statement = self.insert_between(own)
        return None if statement is None else Mutation(tuple(self.parameters), clauses, (statement,))

    # --- parts

    def free(self, kind: str) -> list[Property]:
        """The properties that can be set."""
        type_ = self.schema.find(kind)
        return [each for each in type_.properties if each.name not in type_.key and each.type in SINGLE]

    def assigned(self, kind: str, scope: Scope | None) -> tuple[tuple[str, tree.Expr], ...]:
        """New values for one or two properties."""
        free = self.free(kind)
        if not free:
            return ()
        chosen = self.rng.sample(free, 1 if self.chance(0.7) else min(2, len(free)))
        return tuple((each.name, self.new_value(each, kind, scope)) for each in chosen)

    def new_value(self, prop: Property, kind: str, scope: Scope | None) -> tree.Expr:
        """A constant, or something computed from the row or from what was matched."""
        if prop.nullable and self.chance(0.1):
            return tree.Literal(None, prop.type)
        if prop.nullable and prop.type != "enum" and "expressions_in_mutations" not in self.without:
            alike: list[tree.Expr] = []
            if scope is not None:
                alike += self.properties(scope, of=lambda each: each.type == prop.type)
            else:
                alike += [tree.Bare(e.name, e.type) for e in self.schema.properties(kind) if e.type == prop.type]
            if alike and self.chance(0.6):
                value = self.rng.choice(alike)
                number = prop.type in ("F64",) and self.chance(0.5)
                return Arithmetic("+", value, tree.Literal(0.5, "F64")) if number else value
        value = self.rng.choice(values_of(prop.type))
        if prop.type == "enum":
            return tree.Literal(value, prop.type)
        literal = tree.Literal(value, prop.type)
        return literal if self.chance(0.6) or prop.type == "F32" else self.given(value, prop.type)

    def given(self, value: Any, type_: str) -> tree.Param:
        """A parameter that is there."""
        name = f"p{len(self.parameters)}"
        self.parameters.append(tree.Parameter(name, type_, value))
        return tree.Param(name, type_)

    def where(self, kind: str) -> tree.Expr:
        """A condition over the row."""
        there = Scope({"own": kind}, {"own": kind})
        if self.chance(0.4) and (made := self.condition(there, 1)) is not None and (plain := bare(made)) is not None:
            return plain
        if self.chance(0.2) and (own := self.own_test(kind)) is not None:
            return own
        tests: list[tree.Expr] = []
        for _ in range(1 if self.chance(0.7) else 2):
            prop = self.prop(there, of=lambda each: each.type in SINGLE)
            if prop is None:
                ids = [*self.tables[kind]]
                return Compare("=", tree.Bare("id", "String", own=True), tree.Literal(self.rng.choice(ids), "String"))
            item = tree.Bare(prop.name, prop.type)
            if self.chance(0.2):
                tests.append(IsNull(item, self.chance(0.5)))
            else:
                operator = self.rng.choice(OPERATORS if prop.type not in ("enum", "Bool") else OPERATORS[:2])
                tests.append(Compare(operator, item, self.like(prop, there)))
        return tests[0] if len(tests) == 1 else Joined(self.rng.choice(("and", "or")), tuple(tests))

    def own_test(self, kind: str) -> tree.Expr | None:
        """The row's own `id`, or an end of an edge, where no property has that name."""
        names = {"id": "id", "from": "src", "to": "dst"} if kind.startswith("edge:") else {"id": "id"}
        declared = {each.name for each in self.schema.properties(kind)}
        free = [name for name in names if name not in declared]
        if not free or not self.tables[kind]:
            return None
        name = self.rng.choice(free)
        row = self.rng.choice([*self.tables[kind].values()])
        literal = tree.Literal(getattr(row, names[name]), "String")
        return Compare(self.rng.choice(("=", "=", "!=")), tree.Bare(name, "String", own=True), literal)

    def insert(self, kind: str) -> Insert | None:
        """A new row, or one whose key is there."""
        type_ = self.schema.find(kind)
        required = [each for each in type_.properties if not each.nullable]
        if any(each.type not in SINGLE for each in required):
            return None
        values: dict[str, tree.Expr] = {each.name: self.filled(each) for each in required}
        for each in self.free(kind):
            if each.nullable and self.chance(0.5):
                values[each.name] = self.new_value(each, kind, Scope())
        new = "insert_new" not in self.without and self.chance(0.5)
        if new and isinstance(type_, NodeType) and type_.key and self.tables[kind] and self.chance(0.8):
            there = dict(self.rng.choice([*self.tables[kind].values()]).values)  # a key that is taken
            types = {each.name: each.type for each in type_.properties}
            values |= {name: tree.Literal(there[name], types[name]) for name in type_.key}
        ends: list[tree.Expr] = []
        if isinstance(type_, EdgeType):
            for end in (type_.source, type_.target):
                ids = [*self.tables[f"node:{end}"], *self.pending.get(f"node:{end}", ())]
                if not ids:
                    return None
                ends.append(tree.Literal(self.rng.choice(ids), "String"))
        if isinstance(type_, NodeType) and type_.key:
            # An edge of a later statement may end there.
            given = [values[name] for name in type_.key]
            texts = [each.value for each in given if isinstance(each, tree.Literal)]
            self.pending.setdefault(kind, []).append(key_text(texts))
        return Insert(kind, tuple(values.items()), *(ends or (None, None)), new)

    def filled(self, prop: Property) -> tree.Expr:
        """A value that is not null; keys from the pool that rows have."""
        if prop.name in NAMED.values():
            return tree.Literal(self.rng.choice(KEY_VALUES[prop.type]), prop.type)
        return tree.Literal(self.rng.choice(values_of(prop.type)), prop.type)

    def insert_between(self, own: Scope) -> Insert | None:
        """An edge for each pair that was matched."""
        nodes = {name: kind for name, kind in own.own.items() if kind.startswith("node:") and name[0] != "_"}
        pairs = [
            (a, edge, b)
            for a in nodes
            for b in nodes
            for edge in self.schema.edges
            if (nodes[a], nodes[b]) == (f"node:{edge.source}", f"node:{edge.target}")
        ]
        pairs = [each for each in pairs if all(p.nullable or p.type in SINGLE for p in each[1].properties)]
        if not pairs:
            return None
        a, edge, b = self.rng.choice(pairs)
        values = [(each.name, self.filled(each)) for each in edge.properties if not each.nullable]
        ends = (tree.Entity(a, nodes[a]), tree.Entity(b, nodes[b]))
        return Insert(f"edge:{edge.name}", tuple(values), *ends)


def hunt_mutations(seed: int, count: int, without: frozenset[str], made: Counter[str] | None = None) -> Iterator[Wrong]:
    """Mutations on one random graph, one after the other, each on what the ones before it left."""
    rng = random.Random(seed)
    making = Making(rng)
    schema = making.schema()
    world = World(schema, (Load(making.rows(schema)),))
    with running(world) as product:
        for number in range(count):
            own = random.Random(f"{seed}/{number}")
            if own.random() < 0.2:
                product.take(own.choice((Index(), Compact(), Branch(f"b{number}"))))
            maker = MutationMaker(own, schema, world.tables(), without | READS_ONLY)
            mutation = changing(maker, world)
            if mutation is None:
                continue
            if made is not None:
                made.update(maker.used.keys())
            there = check(seed, number, world, product, mutation, made)
            if isinstance(there, Wrong):
                yield there
                return
            rows = tuple(row for table in settled(there, world).values() for row in table.values())
            world = World(schema, (Load(rows),))


def changing(maker: MutationMaker, world: World) -> Mutation | None:
    """A mutation, most times one that changes something."""
    for _ in range(4):
        mutation = maker.mutation()
        try:
            expected = outcome(mutation, world) if mutation is not None else None
        except Refused:
            return mutation
        except NO_VALUE:
            continue
        if expected is not None and (expected.nodes + expected.edges or maker.chance(0.2)):
            return mutation
    return None


def check(
    seed: int, number: int, world: World, product: Product, mutation: Mutation, made: Counter[str] | None
) -> Wrong | Lines:
    """Run one mutation on both sides: what is wrong, or the rows that the product has afterwards."""
    try:
        expected: Outcome | None = outcome(mutation, world)
        says = f"{expected.nodes} nodes and {expected.edges} edges different"
    except Refused as refused:
        expected, says = None, f"refused: {refused}"
    if made is not None:
        made[f"{type(mutation.statements[0]).__name__} {'after match' if mutation.clauses else ''}"] += 1
        made["refused" if expected is None else "different" if expected.nodes + expected.edges else "unchanged"] += 1
    try:
        result = product.graph.mutate(text(mutation), params=arguments(mutation), branch=product.branch)
        counts = f"{result.affected_nodes} nodes and {result.affected_edges} edges different"
        unchanged = expected is not None and expected.nodes + expected.edges == 0
        if counts != says or (result.commit is None) != unchanged:
            return Wrong(seed, number, world, mutation, says, f"{counts}, commit {result.commit}")
    except Exception as error:
        if expected is not None:
            return Wrong(seed, number, world, mutation, says, f"{type(error).__name__}: {error}")
    lines = lines_of(product, world.schema)
    there = {kind: plain_rows(world.schema, kind, found) for kind, found in lines.items()}
    wanted = rows_of(world.schema, expected.tables if expected is not None else world.tables())
    if not same(there, wanted):
        apart = [kind for kind in wanted if not same(there[kind], wanted[kind])]
        return Wrong(seed, number, world, mutation, str([wanted[k] for k in apart]), str([there[k] for k in apart]))
    return lines


def rows_of(schema: Schema, tables: Tables) -> dict[str, list[Any]]:
    """All rows as plain values, in an order that does not depend on ids that were made up."""
    oracle = Oracle(schema, tables)
    return {kind: plain_rows(schema, kind, oracle.ask(everything(schema, kind))) for kind in tables}


def plain_rows(schema: Schema, kind: str, lines: list[dict[str, Any]]) -> list[Any]:
    """The rows of one type, sorted."""
    return sorted((anonymous(schema, kind, line) for line in lines), key=repr)


def lines_of(product: Product, schema: Schema) -> Lines:
    """All rows of the product as it gives them, by type."""
    kinds = [*(f"node:{each.name}" for each in schema.nodes), *(f"edge:{each.name}" for each in schema.edges)]
    return {kind: product.ask(everything(schema, kind), "csr").rows or [] for kind in kinds}


def everything(schema: Schema, kind: str) -> tree.Query:
    """A query for all rows of a type, of edges with their ends."""
    type_ = schema.find(kind)
    if isinstance(type_, EdgeType):
        source, target = f"node:{type_.source}", f"node:{type_.target}"
        columns = (("a", source), ("x", kind), ("b", target))
        clauses: tuple[tree.Clause, ...] = (tree.Hop("a", type_.name, "b", edge_var="x"),)
    else:
        columns, clauses = (("x", kind),), (tree.Bind("x", kind),)
    return tree.Query((), clauses, tuple(tree.Column(tree.Entity(name, own)) for name, own in columns))


def anonymous(schema: Schema, kind: str, row: dict[str, Any]) -> Any:
    """A row without an id that was made up."""
    type_ = schema.find(kind)
    own = dict(row["x"])
    made_up = len(own["@id"]) == 26 or own["@id"].startswith("new ")
    if made_up and not type_.keyed:
        own["@id"] = "new"
    ends = [row[end]["@id"] for end in ("a", "b") if end in row]
    return [*ends, own]


def settled(lines: Lines, world: World) -> Tables:
    """The rows of the product, with the ids that it gave to new ones: where the next mutation starts from."""
    before = world.tables()
    tables: Tables = {kind: {} for kind in before}
    for kind, rows in lines.items():
        properties = world.schema.properties(kind)
        for line in rows:
            own = line["x"]
            old = before[kind].get(own["@id"])
            kept = dict(old.values) if old else {}  # vectors are not shown
            values = ((p.name, kept.get(p.name) if p.type == "Vector" else own.get(p.name), p.type) for p in properties)
            ends = (line["a"]["@id"], line["b"]["@id"]) if "a" in line else (None, None)
            stored_values = tuple((name, stored(value, type_)) for name, value, type_ in values)
            tables[kind][own["@id"]] = Row(kind, own["@id"], stored_values, *ends)
    return tables
