"""Random queries over one graph.

What can be made is a list of makers, by what they make: `condition`, `clause`, `value`, `aggregate`. Constructs add
theirs with `makes`; a maker that finds nothing to work on returns None and another one is asked. Constants are mostly
taken from the rows that are there, so that most queries find something.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.differential import tree
from tests.differential.rows import Tables
from tests.differential.types import NUMBERS, RANGES, SINGLE, EdgeType, Property, Schema, family, item_of
from tests.differential.world import values_of

NAMES = tuple("abcdefghijklmnoqrstuvwxyz")


@dataclass(frozen=True)
class Maker:
    """One way to make something, how often it is chosen, and the name under which it can be switched off."""

    make: Callable[..., Any]
    weight: float
    feature: str


MAKERS: dict[str, list[Maker]] = {}


def makes(what: str, weight: float = 1.0, feature: str | None = None) -> Callable[[Any], Any]:
    """Register a function as one way to make `what`."""

    def register(function: Any) -> Any:
        MAKERS.setdefault(what, []).append(Maker(function, weight, feature or function.__name__))
        return function

    return register


@dataclass
class Scope:
    """The variables that a place can name, and those its own block binds."""

    variables: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """Aliases of an earlier stage and their types."""
    paths: list[str] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)
    """Names that blocks inside have given a meaning of their own."""
    only: dict[str, str] = field(default_factory=dict)
    """The one node type that a traversal leaves to a variable of an interface."""

    def inner(self) -> Scope:
        """For a block inside."""
        return Scope(dict(self.variables), values=self.values, only=self.only)

    def bind(self, name: str, kind: str) -> str:
        """A new variable of this block."""
        self.variables[name] = kind
        self.own[name] = kind
        self.only.pop(name, None)  # what a sibling block said of another variable of that name
        return name

    def named(self) -> list[str]:
        """The variables that have a name."""
        return [name for name in self.variables if not name.startswith("_")]


class QueryMaker:
    """Makes the queries of one graph."""

    def __init__(
        self, rng: random.Random, schema: Schema, tables: Tables, without: frozenset[str] = frozenset()
    ) -> None:
        self.rng = rng
        self.schema = schema
        self.tables = tables
        self.without = without
        self.parameters: list[tree.Parameter] = []
        self.anonymous = 0
        self.paths = 0
        self.is_new = False
        """Whether the traversal being made is what tells the type of one of its ends."""
        self.used: Counter[str] = Counter()

    def chance(self, share: float) -> bool:
        """True that often."""
        return self.rng.random() < share

    def make(self, what: str, *given: Any, **more: Any) -> Any:
        """Something of that kind, by one of its makers, or None when none of them can."""
        makers = [each for each in MAKERS.get(what, []) if each.feature not in self.without]
        while makers:
            chosen = self.rng.choices(makers, [each.weight for each in makers])[0]
            made = chosen.make(self, *given, **more)
            if made is not None:
                self.used[chosen.feature] += 1
                return made
            makers.remove(chosen)
        return None

    # --- names and values

    def fresh(self, scope: Scope) -> str:
        """A name that is free here. Sibling blocks so come to use the same ones."""
        if scope.own and self.chance(0.05):
            self.anonymous += 1
            return f"_{self.anonymous}"
        free = [name for name in NAMES if name not in scope.variables]
        return self.rng.choice(free[:3] if self.chance(0.7) else free)

    def properties(self, scope: Scope, *, of: Callable[[Property], bool] = lambda _: True) -> list[tree.Prop]:
        """The properties that can be named and are of a kind."""
        return [
            tree.Prop(name, each.name, each.type)
            for name in scope.named()
            for each in self.schema.properties(scope.variables[name])
            if of(each)
        ]

    def prop(self, scope: Scope, *, of: Callable[[Property], bool] = lambda _: True) -> tree.Prop | None:
        """One of them; those of the block itself are preferred."""
        found = self.properties(scope, of=of)
        own = [each for each in found if each.var in scope.own]
        if own and self.chance(0.75):
            found = own
        return self.rng.choice(found) if found else None

    def single(self, scope: Scope) -> tree.Prop | None:
        """A property with one value."""
        return self.prop(scope, of=lambda each: each.type in SINGLE)

    def there(self, prop: tree.Prop, scope: Scope) -> list[Any]:
        """The values that the property has in the rows."""
        kinds = self.schema.members(scope.variables[prop.var])
        rows = [row for kind in kinds for row in self.tables[kind].values()]
        return [value for row in rows for name, value in row.values if name == prop.name and value is not None]

    def like(self, prop: tree.Prop, scope: Scope) -> tree.Expr:
        """A constant that can be compared with the property: a literal or a parameter."""
        values = self.there(prop, scope)
        value = self.rng.choice(values) if values and self.chance(0.75) else self.rng.choice(values_of(prop.type))
        return self.constant(value, prop.type)

    def constant(self, value: Any, type_: str) -> tree.Expr:
        """A literal or a parameter with that value."""
        if self.chance(0.35):
            return self.parameter(value, type_)
        return tree.Literal(_short(value, type_), type_)

    def parameter(self, value: Any, type_: str) -> tree.Param:
        """A parameter with that value; now and then an optional one without a value."""
        declared = "String" if type_ == "enum" else type_
        optional, given, default = self.chance(0.2), True, ()
        if optional and self.chance(0.15):
            value, given = None, self.chance(0.5)
        elif item_of(declared) is None and declared != "Vector" and self.chance(0.15):
            given = self.chance(0.3)
            default = (self.rng.choice(values_of(declared)) if given else value,)
            self.used["parameter with a default"] += 1
        made = tree.Parameter("", declared, value, optional, given, default)
        for each in self.parameters:
            if replace(each, name="") == made and type(each.value) is type(value):
                return tree.Param(each.name, declared)
        name = f"p{len(self.parameters)}"
        self.parameters.append(replace(made, name=name))
        self.used[f"parameter {declared}"] += 1
        return tree.Param(name, declared)

    # --- blocks

    def edges_of(self, kind: str) -> list[EdgeType]:
        """The edge types that touch a node type, or one that an interface stands for."""
        kinds = self.schema.members(kind)
        return [each for each in self.schema.edges if {f"node:{each.source}", f"node:{each.target}"} & {*kinds}]

    def bind(self, scope: Scope) -> tree.Bind:
        """A node by its type, with values now and then."""
        kinds = [f"node:{each.name}" for each in self.schema.nodes]
        filled = [kind for kind in kinds if self.tables[kind]]
        wide = [f"interface:{each.name}" for each in self.schema.interfaces]
        wide = [each for each in wide if self.schema.members(each)]
        if wide and self.chance(0.3):
            kinds, filled = wide, wide
            self.used["interface"] += 1
        kind = self.rng.choice(filled if filled and self.chance(0.97) else kinds)
        var = scope.bind(self.fresh(scope), kind)
        return tree.Bind(var, kind, self.inline(var, scope) if self.chance(0.12) else ())

    def inline(self, var: str, scope: Scope) -> tuple[tuple[tree.Prop, tree.Expr], ...]:
        """Values between braces."""
        properties = [each for each in self.schema.properties(scope.variables[var]) if each.type != "Vector"]
        if not properties:
            return ()
        made = []
        for each in self.rng.sample(properties, 1 if self.chance(0.8) else min(2, len(properties))):
            prop = tree.Prop(var, each.name, each.type)
            item = item_of(each.type)
            if each.nullable and self.chance(0.15):
                value: tree.Expr = tree.Literal(None, each.type)
            elif item is not None:
                lists = self.there(prop, scope)
                members = [member for values in lists for member in values] or list(values_of(item))
                value = self.constant(self.rng.choice(members), item)
            else:
                value = self.like(prop, scope)
            made.append((prop, value))
        return tuple(made)

    def hop(self, scope: Scope) -> tree.Hop | None:
        """A traversal that hangs on something bound."""
        nodes = [name for name, kind in scope.variables.items() if not kind.startswith("edge:") and name[0] != "_"]
        kinds = {name: scope.only.get(name, scope.variables[name]) for name in nodes}
        starts = [(name, edge) for name in nodes for edge in self.edges_of(kinds[name])]
        if not starts:
            return None
        own = [each for each in starts if each[0] in scope.own]
        start, edge = self.rng.choice(own if own and self.chance(0.6) else starts)
        ends = (f"node:{edge.source}", f"node:{edge.target}")
        mine = self.schema.members(kinds[start])
        forward = self.chance(0.5) if ends[0] in mine and ends[1] in mine else ends[0] in mine
        other_kind = ends[1] if forward else ends[0]
        known = [name for name in nodes if other_kind in self.schema.members(kinds[name])]
        other = self.rng.choice(known) if known and self.chance(0.35) else None
        self.is_new = other is None
        if other is None:
            other = scope.bind(self.fresh(scope), other_kind)
        source, target = (start, other) if forward else (other, start)
        if source == target and ends[0] != ends[1]:
            return None
        for name, kind in ((source, ends[0]), (target, ends[1])):
            if scope.variables[name] != kind:
                scope.only[name] = kind
        return self.make("hop", scope, source, edge, target)

    def clauses(self, scope: Scope, depth: int = 2) -> tuple[tree.Clause, ...]:
        """The clauses of a block. A block inside another one hangs on a variable from outside."""
        rng = self.rng
        inside = bool(scope.variables)
        made: list[tree.Clause] = []
        if not inside:
            made.append(self.bind(scope))
        elif self.chance(0.4) and (narrowed := self.make("narrowing", scope)) is not None:
            made.append(narrowed)
        for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)) if not inside else rng.choice((0, 1, 1, 1, 1, 1, 2, 2, 2))):
            hop = self.hop(scope)
            if hop is not None:
                made.append(hop)
        if self.chance(0.1) and len(scope.own) < 4:
            made.append(self.bind(scope))
        if self.chance(0.08):
            nodes = [name for name in scope.named() if scope.variables[name].startswith("node:")]
            if nodes:
                twice = rng.choice(nodes)
                made.append(tree.Bind(twice, scope.variables[twice], self.inline(twice, scope)))
        for _ in range(rng.choice((0, 1, 1, 2)) if made else 1):
            condition = self.condition(scope)
            if condition is not None:
                made.append(tree.Where(condition))
        if made and self.chance(0.04):
            again = rng.choice(made)
            names = [name for name in vars(again).values() if isinstance(name, str)]
            own = isinstance(again, tree.Hop) and (again.edge_var or again.path)
            if not own and not any(name.startswith("_") for name in names):
                made.append(again)  # said twice, meant once
        if depth:
            for _ in range(rng.choice((0, 0, 0, 1, 2)) if not inside else rng.choice((0, 0, 0, 1))):
                block = self.make("block", scope, depth - 1)
                if block is not None:
                    made.append(block)
        if self.chance(0.15):
            made = self.shuffled(made)
        for _ in range(rng.choice((0, 0, 0, 0, 1, 2)) if depth else 0):
            before = set(scope.own)
            block = self.make("last block", scope, depth - 1)
            if block is None:
                continue
            made.append(block)
            new = {name: kind for name, kind in scope.own.items() if name not in before}
            if new and self.chance(0.1) and (place := self.earlier(made, new)) is not None:
                self.used["optional before what it goes on from"] += 1
                made.insert(place, made.pop())
                continue
            if new and self.chance(0.25) and (test := self.condition(Scope(new, new))) is not None:
                self.used["filter on what an optional binds"] += 1
                made.append(tree.Where(test))
            elif new and self.chance(0.1) and (inner := self.make("test block", scope, depth - 1)) is not None:
                self.used["block after an optional"] += 1
                made.append(inner)
        return tuple(made)

    def earlier(self, clauses: list[tree.Clause], new: Iterable[str]) -> int | None:
        """A place for the last clause, an optional, before some that it goes on from.

        Behind other optionals, and behind clauses that use the names it binds for something of their own.
        """
        least = 0
        for at, clause in enumerate(clauses[:-1], 1):
            if (isinstance(clause, tree.Block) and clause.kind == "optional") or tree.mentioned(clause) & set(new):
                least = at
        return self.rng.randrange(least, len(clauses) - 1) if least < len(clauses) - 1 else None

    def shuffled(self, clauses: list[tree.Clause]) -> list[tree.Clause]:
        """In another order; one `either` may use what another one binds, so those stay one behind the other."""
        mixed = self.rng.sample(clauses, len(clauses))
        ordered = iter([each for each in clauses if isinstance(each, tree.Either)])
        return [next(ordered) if isinstance(each, tree.Either) else each for each in mixed]

    def condition(self, scope: Scope, depth: int = 2, *, inside: bool = False) -> tree.Expr | None:
        """A Boolean. `inside`: under `or` or `not`, or as a value."""
        if depth and self.chance(0.3):
            return self.make("joined condition", scope, depth - 1)
        if not inside and self.chance(0.06):
            return self.make("whole condition", scope) or self.make("condition", scope)
        return self.make("condition", scope)

    # --- queries

    def query(self) -> tree.Query:
        """A whole read."""
        self.parameters = []
        self.used = Counter()
        scope = Scope()
        clauses = self.clauses(scope)
        stages: list[tree.Stage] = []
        while self.chance(0.12) and (made := self.make("stage", scope)) is not None:
            stages.append(made[0])
            scope = made[1]
        columns, order, _ = self.make("result", scope)
        limit = None
        if self.chance(0.25):
            count = self.rng.choice((0, 1, 2, 3, 5, 10))
            limit = self.required(count) if self.chance(0.3) else tree.Literal(count, "I64")
            self.used["limit"] += 1
        query = tree.Query(tuple(self.parameters), clauses, columns, order, limit, stages=tuple(stages))
        return self.make("finish", scope, query) or query if self.chance(0.3) else query

    def required(self, value: int) -> tree.Param:
        """A parameter that must be given."""
        name = f"p{len(self.parameters)}"
        self.parameters.append(tree.Parameter(name, self.rng.choice(("I64", "I32", "U32")), value))
        return tree.Param(name, self.parameters[-1].type)


def _short(value: Any, type_: str) -> Any:
    """A literal for a stored value; 32-bit floats as the decimal that a person writes."""
    if type_ == "F32" and value is not None:
        import numpy as np

        return float(str(np.float32(value)))
    return tuple(value) if isinstance(value, list) else value


def comparable(one: Property, other: tree.Prop) -> bool:
    """Whether values of the two can be compared."""
    return one.type in SINGLE and family(one.type) == family(other.type)


def fits(value: Any, type_: str) -> bool:
    """Whether an integer is one of the type."""
    low, high = RANGES.get(type_, (value, value))
    return type_ not in NUMBERS or low <= value <= high
