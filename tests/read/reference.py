"""The reference evaluator: a slow, obvious interpreter of the IR in plain Python, over lists of dictionaries.

It shares no code with the executor. Where the two differ, one of them is wrong about page 02 of the specification.

A database is `{table_key: [row, …]}` where a row maps `id` (edges also `src`, `dst`) and property names to Python
values. A binding maps variable names to rows; computed columns are kept beside it under their names.
"""

from __future__ import annotations

import datetime
import math
import re
import statistics
import unicodedata
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from omnigraph.query import ir
from omnigraph.query.typing import type_of
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import EntityType, VectorType, is_blob

Row = dict[str, Any]


class Refused(Exception):
    """The query has no answer: the product must refuse it too."""


@dataclass
class Binding:
    """One row of a running query. An entity that an `optional` did not find is None; a path is a `Walk`."""

    entities: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)

    def with_(self, other: Binding) -> Binding:
        return Binding({**self.entities, **other.entities}, {**self.columns, **other.columns})

    def only(self, names: Any, columns: Any = ()) -> Binding:
        return Binding({n: self.entities[n] for n in names}, {n: self.columns[n] for n in columns})


@dataclass(frozen=True)
class Walk:
    """A path: the ids of its nodes and edges."""

    nodes: tuple[str, ...]
    edges: tuple[str, ...]


def identity(entity: Any) -> Any:
    """What tells two entities apart; sorts as they do: by id, then by the name of the type, nothing first."""
    if entity is None or isinstance(entity, Walk):
        return (0, entity)
    return (1, entity["id"], entity["@type"])


class Reference:
    """Evaluates compiled reads over a database."""

    def __init__(self, catalog: Catalog, database: dict[str, list[Row]], parameters=None, now=None, provider=None):
        self.catalog = catalog
        self.database = {
            key: [{**row, "@type": key.split(":", 1)[1]} for row in rows] for key, rows in database.items()
        }
        self.parameters = parameters or {}
        self.now = now or datetime.datetime.now(datetime.UTC)
        self.provider = provider

    def run(self, query: ir.ReadQuery) -> list[Row]:
        """The rows of a query, in order."""
        return [binding.columns for binding in self.rows(query.root, None)]

    # --- operators ----------------------------------------------------------------------------------------------

    def rows(self, op: ir.Operator, outer: Binding | None) -> list[Binding]:
        match op:
            case ir.Unit():
                return [Binding()]
            case ir.Outer(vars=names, columns=columns):
                return [outer.only(names, columns)]
            case ir.Scan(var=var):
                return [Binding({var: row}) for table_key in op.all_tables for row in self.database[table_key]]
            case ir.Join(left=left, right=right):
                return [
                    one.with_(two)
                    for one in self.rows(left, outer)
                    for two in self.rows(right, outer)
                    if all(
                        identity(one.entities[var]) == identity(two.entities[var])
                        for var in one.entities.keys() & two.entities
                    )
                ]
            case ir.Expand():
                return self.expand(op, outer)
            case ir.Filter(input=below, predicate=predicate):
                return [b for b in self.rows(below, outer) if self.value(predicate, b) is True]
            case ir.AntiJoin(input=below, inner=inner) | ir.SemiJoin(input=below, inner=inner):
                wanted = isinstance(op, ir.SemiJoin)
                return [
                    binding
                    for binding in self.rows(below, outer)
                    if bool(self.rows(inner, self.around(outer, binding))) == wanted
                ]
            case ir.Optional(input=below, inner=inner, binds=binds, paths=paths):
                names = [variable.name for variable in binds] + list(paths)
                found = []
                for binding in self.rows(below, outer):
                    matches = [m.only(names) for m in self.rows(inner, self.around(outer, binding))]
                    found += [binding.with_(match) for match in matches or [Binding(dict.fromkeys(names))]]
                return found
            case ir.Either(input=below, arms=arms, binds=binds):
                names = [variable.name for variable in binds]
                found = []
                for binding in self.rows(below, outer):
                    around = self.around(outer, binding)
                    matches = [m.only(names) for arm in arms for m in self.rows(arm, around)]
                    distinct = {tuple(identity(m.entities[n]) for n in names): m for m in matches}
                    found += [binding.with_(match) for match in distinct.values()]
                return found
            case ir.Rank(input=below, ranking=ranking, column=column):
                found = self.rows(below, outer)
                for binding in found:
                    binding.columns[column] = self.score(ranking, binding.entities[ranking.var])
                return found
            case ir.Fuse(input=below, ranking=ranking, column=column):
                return self.fuse(self.rows(below, outer), ranking, column)
            case ir.GroupBy():
                return self.group(op, self.rows(op.input, outer))
            case ir.Sort(input=below, keys=keys, tie_break=names):
                found = self.rows(below, outer)
                for name in reversed(names):
                    found.sort(key=lambda b: self.named(b, name))
                for key in reversed(keys):
                    found.sort(key=lambda b: sort_key(self.value(key.expr, b)), reverse=key.descending)
                    if key.nulls_first is not None:
                        first = key.nulls_first
                        found.sort(key=lambda b: (self.value(key.expr, b) is None) != first)
                return found
            case ir.Limit(input=below, count=count, offset=offset):
                start = 0 if offset is None else self.value(offset, Binding())
                stop = None if count is None else start + self.value(count, Binding())
                return self.rows(below, outer)[start:stop]
            case ir.Stage(input=below, variables=names, columns=columns):
                return [
                    Binding(b.only(names).entities, {column.name: self.value(column.expr, b) for column in columns})
                    for b in self.rows(below, outer)
                ]
            case ir.Project(input=below, columns=columns):
                return [
                    Binding({}, {column.name: self.shown(column, binding) for column in columns})
                    for binding in self.rows(below, outer)
                ]
        raise TypeError(op)

    def around(self, outer: Binding | None, binding: Binding) -> Binding:
        return outer.with_(binding) if outer else binding

    def edges_from(self, op: ir.Expand, node: Row, direction: ir.Direction) -> list[tuple[Row, Row]]:
        """(edge, node at its other end) for every edge that may be taken from a node: one for each orientation."""
        found = []
        for name in op.all_edges:
            edge_type = self.catalog.table(f"edge:{name}")
            for edge in self.database[f"edge:{name}"]:
                if op.where is not None and self.value(op.where, Binding({ir.EDGE: edge})) is not True:
                    continue
                ends = []
                if direction is not ir.Direction.IN and (edge_type.source, edge["src"]) == (node["@type"], node["id"]):
                    ends.append((edge_type.target, edge["dst"]))
                if direction is not ir.Direction.OUT and (edge_type.target, edge["dst"]) == (node["@type"], node["id"]):
                    other = (edge_type.source, edge["src"])
                    if not (ends and edge["src"] == edge["dst"] and edge_type.source == edge_type.target):
                        ends.append(other)
                found += [(edge, self.node(*end)) for end in ends]
        return found

    def node(self, type_name: str, id_: str) -> Row:
        return next(row for row in self.database[f"node:{type_name}"] if row["id"] == id_)

    def expand(self, op: ir.Expand, outer: Binding | None) -> list[Binding]:
        found = []
        for binding in self.rows(op.input, outer):
            start = binding.entities[op.from_var]
            if start is None:
                continue
            if op.edge_var is not None:
                pairs = [(far, edge) for edge, far in self.edges_from(op, start, op.direction)]
            else:
                pairs = [(far, None) for far in self.reached(op, start)]
            for far, edge in pairs:
                if f"node:{far['@type']}" not in op.all_to_tables:
                    continue
                if op.to_var in binding.entities and identity(binding.entities[op.to_var]) != identity(far):
                    continue
                entities = {**binding.entities, op.to_var: far}
                if edge is not None:
                    entities[op.edge_var] = edge
                if op.path_var is not None:
                    entities[op.path_var] = self.least_walk(op, entities)
                found.append(Binding(entities, dict(binding.columns)))
        return found

    def reached(self, op: ir.Expand, start: Row) -> list[Row]:
        """Breadth-first distances from one node, those within the bounds."""
        distance: dict[Any, int] = {}
        rows: dict[Any, Row] = {}
        level = [start]
        for hop in range(1, op.max_hops + 1):
            following = []
            for node in level:
                for _, far in self.edges_from(op, node, op.direction):
                    key = identity(far)
                    if key == identity(start):
                        if hop == 1:
                            distance.setdefault(key, 1)
                            rows[key] = far
                    elif key not in distance:
                        distance[key] = hop
                        rows[key] = far
                        following.append(far)
            level = following
        return [rows[key] for key, hops in distance.items() if hops >= op.min_hops]

    def least_walk(self, op: ir.Expand, entities: dict[str, Row]) -> Walk:
        """Every shortest walk from the start of the path to its end, and of those the least."""
        other = op.to_var if op.path_start == op.from_var else op.from_var
        turned = {ir.Direction.OUT: ir.Direction.IN, ir.Direction.IN: ir.Direction.OUT}
        direction = op.direction if op.path_start == op.from_var else turned.get(op.direction, op.direction)
        start, end = entities[op.path_start], entities[other]
        walks: list[tuple[list[Row], list[Row]]] = [([start], [])]
        while True:
            longer = [
                ([*nodes, far], [*edges, edge])
                for nodes, edges in walks
                for edge, far in self.edges_from(op, nodes[-1], direction)
            ]
            whole = [walk for walk in longer if identity(walk[0][-1]) == identity(end)]
            if whole:
                nodes, edges = min(whole, key=lambda w: ([identity(n) for n in w[0]], [identity(e) for e in w[1]]))
                return Walk(tuple(n["id"] for n in nodes), tuple(e["id"] for e in edges))
            walks = longer

    def group(self, op: ir.GroupBy, below: list[Binding]) -> list[Binding]:
        for name in reversed(op.row_order):
            below.sort(key=lambda b: self.named(b, name))
        groups: dict[tuple, list[Binding]] = {}
        for binding in below:
            key = tuple(hashable(self.value(column.expr, binding)) for column in op.keys)
            groups.setdefault(key, []).append(binding)
        if not op.keys and not groups:
            groups[()] = []
        out = []
        for members in groups.values():
            columns = {column.name: self.value(column.expr, members[0]) for column in op.keys}
            for column in op.aggregates:
                columns[column.name] = self.aggregate(column.expr, members)
            entities = {c.expr.var: columns[c.name] for c in op.keys if isinstance(c.expr, ir.Entity)}
            out.append(Binding(entities, columns))
        return out

    def aggregate(self, aggregate: ir.Aggregate, members: list[Binding]) -> Any:
        values = [value for b in members if (value := self.value(aggregate.arg, b)) is not None]
        if aggregate.distinct:
            seen: dict[Any, Any] = {}
            for value in values:
                seen.setdefault(hashable(value), value)
            values = list(seen.values())
        match aggregate.function:
            case ir.AggregateFunction.COUNT:
                return len(values)
            case ir.AggregateFunction.SUM:
                if values and isinstance(values[0], int):
                    return self.whole_sum(sum(values), str(type_of(aggregate)))
                return float(sum(map(Fraction, values))) if values else None
            case ir.AggregateFunction.AVG:
                return float(sum(map(Fraction, values)) / len(values)) if values else None
            case ir.AggregateFunction.MIN:
                return min(values, default=None)
            case ir.AggregateFunction.MAX:
                return max(values, default=None)
            case ir.AggregateFunction.COLLECT if not members:
                return None
            case ir.AggregateFunction.COLLECT:
                return [value["id"] if isinstance(value, dict) else value for value in values]
            case ir.AggregateFunction.MEDIAN:
                return float(statistics.median(map(float, values))) if values else None
            case ir.AggregateFunction.STDDEV:
                return statistics.stdev(map(float, values)) if len(values) > 1 else None

    def whole_sum(self, total: int, type_name: str) -> int:
        low, high = (0, 2**64 - 1) if type_name.startswith("U") else (-(2**63), 2**63 - 1)
        if not low <= total <= high:
            raise Refused(f"{total} does not fit")
        return total

    def fuse(self, below: list[Binding], ranking: ir.Rrf, column: str) -> list[Binding]:
        k = 60 if ranking.k is None else self.value(ranking.k, Binding())
        places = []
        for one in (ranking.first, ranking.second):
            entities = {identity(b.entities[one.var]): b.entities[one.var] for b in below}
            scores = {id_: score for id_, row in entities.items() if (score := self.score(one, row)) is not None}
            best = sorted(scores, key=lambda id_: (scores[id_] if isinstance(one, ir.Nearest) else -scores[id_], id_))
            places.append((one.var, {id_: place for place, id_ in enumerate(best, start=1)}))
        for binding in below:
            parts = [1 / (k + p[b]) for var, p in places if (b := identity(binding.entities[var])) in p]
            binding.columns[column] = sum(parts) if parts else None
        return below

    # --- expressions --------------------------------------------------------------------------------------------

    def named(self, binding: Binding, name: str) -> Any:
        """A key that sorts as a variable or a computed column does."""
        if name in binding.entities:
            return identity(binding.entities[name])
        return sort_key(binding.columns[name])

    def value(self, expr: ir.Expr, b: Binding) -> Any:
        match expr:
            case ir.Literal(value=value):
                return list(value) if isinstance(value, tuple) else value
            case ir.Param(name=name):
                return self.parameters.get(name)
            case ir.Now():
                return self.now
            case ir.Prop(var=var, name=name):
                return None if b.entities[var] is None else b.entities[var].get(name)
            case ir.Entity(var=var):
                return b.entities[var]
            case ir.TypeOf(var=var):
                return None if b.entities[var] is None else b.entities[var]["@type"]
            case ir.PathValue(var=var, part=part):
                walk = b.entities[var]
                if walk is None:
                    return None
                return {"hops": len(walk.edges), "nodes": list(walk.nodes), "edges": list(walk.edges)}[part.value]
            case ir.ColumnRef(name=name):
                return b.columns[name]
            case ir.IsNull(item=item, negated=negated):
                return (self.value(item, b) is None) != negated
            case ir.And(items=items):
                values = [self.value(item, b) for item in items]
                return False if False in values else None if None in values else True
            case ir.Or(items=items):
                values = [self.value(item, b) for item in items]
                return True if True in values else None if None in values else False
            case ir.Not(item=item):
                value = self.value(item, b)
                return None if value is None else not value
            case ir.TextMatch():
                return self.text_match(expr, b)
            case ir.Case(branches=branches, otherwise=otherwise):
                taken = next((value for condition, value in branches if self.value(condition, b) is True), otherwise)
                return self.fitted(self.value(taken, b), expr.type)
            case ir.Negate(item=item):
                value = self.value(item, b)
                return None if value is None else self.whole(-value, expr.type)
            case ir.Call(function=name, args=args):
                return self.call(name, [self.value(arg, b) for arg in args], expr)
            case ir.Arithmetic(op=op, left=left, right=right):
                one, two = self.value(left, b), self.value(right, b)
                return None if one is None or two is None else self.arithmetic(op, one, two, expr.type)
        left, right = operands(expr)
        one, two = self.value(left, b), self.value(right, b)
        if one is None or two is None:
            return None
        match expr:
            case ir.Compare(op=op):
                return COMPARE[op](one, two)
            case ir.Contains():
                return two in one
            case ir.StartsWith():
                return one.startswith(two)
            case ir.EndsWith():
                return one.endswith(two)
            case ir.Index():
                return one[two] if -len(one) <= two < len(one) else None
            case ir.In():
                return True if one in two else (None if None in two else False)
        raise TypeError(expr)

    def arithmetic(self, op: ir.ArithmeticOp, one: Any, two: Any, type_: Any) -> Any:
        if isinstance(one, str | list):
            return one + two
        if op in (ir.ArithmeticOp.DIVIDE, ir.ArithmeticOp.MODULO) and two == 0:
            raise Refused("a division by zero")
        if str(type_) == "F64":
            one, two = float(one), float(two)
        match op:
            case ir.ArithmeticOp.ADD:
                return self.whole(one + two, type_)
            case ir.ArithmeticOp.SUBTRACT:
                return self.whole(one - two, type_)
            case ir.ArithmeticOp.MULTIPLY:
                return self.whole(one * two, type_)
            case ir.ArithmeticOp.DIVIDE:
                return one / two
        return math.fmod(one, two) if isinstance(one, float) else self.whole(int(math.fmod(one, two)), type_)

    def whole(self, value: Any, type_: Any) -> Any:
        return value if isinstance(value, float) else self.whole_sum(value, str(type_))

    def fitted(self, value: Any, type_: Any) -> Any:
        return float(value) if isinstance(value, int) and str(type_) == "F64" else value

    def call(self, name: str, args: list[Any], expr: ir.Call) -> Any:
        if name == "coalesce":
            return self.fitted(next((arg for arg in args if arg is not None), None), expr.type)
        if None in args:
            return None
        match name:
            case "lower":
                return args[0].lower()
            case "upper":
                return args[0].upper()
            case "length" | "size":
                return len(args[0])
            case "abs":
                return abs(args[0])
        raise NotImplementedError(name)

    def shown(self, column: ir.Column, binding: Binding) -> Any:
        """A returned value: entities become objects."""
        value = self.value(column.expr, binding)
        if not isinstance(column.type, EntityType) or value is None:
            return value
        kind, names = column.type.table_key.split(":", 1)
        shown = {"@id": value["id"]}
        if kind == "interface" or "|" in names:
            shown["@type"] = value["@type"]
        if kind == "edge":
            shown |= {"@src": value["src"], "@dst": value["dst"]}
        if kind == "interface":
            properties = next(each.properties for each in self.catalog.interfaces if each.name == names)
        else:
            types = [self.catalog.table(f"{kind}:{name}") for name in names.split("|")]
            properties = [
                p
                for p in types[0].properties
                if all(p.name in t.by_name and t.by_name[p.name].type == p.type for t in types)
            ]
        for prop in properties:
            hidden = is_blob(prop.type) or isinstance(prop.type, VectorType)
            if not hidden and value.get(prop.name) is not None:
                shown[prop.name] = value[prop.name]
        return shown

    # --- search -------------------------------------------------------------------------------------------------

    def text_match(self, match: ir.TextMatch, b: Binding) -> bool | None:
        entity = b.entities[match.var]
        text, query = None if entity is None else entity.get(match.property), self.value(match.query, b)
        if text is None or query is None:
            return None
        words, wanted = tokens(text), tokens(query)
        match match.predicate:
            case ir.TextPredicate.SEARCH:
                return any(token in words for token in wanted)
            case ir.TextPredicate.MATCH_ALL:
                return bool(wanted) and all(token in words for token in wanted)
            case ir.TextPredicate.MATCH_TEXT:
                size = len(wanted)
                return size > 0 and any(words[i : i + size] == wanted for i in range(len(words) - size + 1))
        edits = None if match.edits is None else self.value(match.edits, b)
        allowed = {token: 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2 for token in wanted}
        if edits is not None:
            allowed = dict.fromkeys(wanted, edits)
        return any(edit_distance(token, word) <= allowed[token] for token in wanted for word in words)

    def score(self, ranking: ir.Nearest | ir.Bm25, row: Row | None) -> float | None:
        query = self.value(ranking.query, Binding())
        value = None if row is None else row.get(ranking.property)
        if query is None or value is None:
            return None
        if isinstance(ranking, ir.Nearest):
            if isinstance(query, str):
                query = self.provider.embed([query], dim=ranking.dim, model=None)[0]
            return cosine(value, query)
        texts = [
            words for r in self.database[f"node:{row['@type']}"] if (words := tokens(r.get(ranking.property) or ""))
        ]
        average = sum(map(len, texts)) / max(len(texts), 1)
        words = tokens(value)
        score, matched = 0.0, False
        for token in dict.fromkeys(tokens(query)):
            count, having = words.count(token), sum(token in text for text in texts)
            if count:
                matched = True
                rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
                score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words) / average))
        return score if matched else None


COMPARE = {
    ir.CompareOp.EQ: lambda a, b: a == b,
    ir.CompareOp.NE: lambda a, b: a != b,
    ir.CompareOp.LT: lambda a, b: a < b,
    ir.CompareOp.LE: lambda a, b: a <= b,
    ir.CompareOp.GT: lambda a, b: a > b,
    ir.CompareOp.GE: lambda a, b: a >= b,
}


def operands(expr: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    match expr:
        case ir.Compare(left=one, right=two) | ir.Contains(haystack=one, needle=two):
            return one, two
        case ir.StartsWith(text=one, prefix=two) | ir.In(item=one, items=two) | ir.EndsWith(text=one, suffix=two):
            return one, two
        case ir.Index(items=one, index=two):
            return one, two
    raise TypeError(expr)


def sort_key(value: Any) -> tuple:
    """Nulls first; entities by id."""
    if value is None:
        return (0, 0)
    return (1, identity(value) if isinstance(value, dict) else value)


def hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return identity(value)
    return tuple(value) if isinstance(value, list) else value


def tokens(text: str) -> list[str]:
    """Runs of letters and digits, in lower case and folded; for the texts of these tests, which have no odd letters."""
    words = re.findall(r"[^\W_]+", "".join(c.lower() for c in text))
    folded = ("".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)) for word in words)
    return [word.replace("ß", "ss") for word in folded]


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        previous, row = row, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


def cosine(one: list[float], two: list[float]) -> float | None:
    """Rounded to 32 bits, as the contract of the executor says."""
    import numpy as np

    size = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(np.float32(y) ** 2.0 for y in two))
    if size == 0:
        return None
    similarity = math.fsum(x * float(np.float32(y)) for x, y in zip(one, two, strict=True)) / size
    return float(np.float32(1 - max(-1.0, min(1.0, similarity))))
