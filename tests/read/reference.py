"""The reference evaluator: a slow, obvious interpreter of the IR in plain Python, over lists of dictionaries.

It shares no code with the executor. Where the two differ, one of them is wrong about page 02 of the specification.

A database is `{table_key: [row, …]}` where a row maps `id` (edges also `src`, `dst`) and property names to Python
values. A binding maps variable names to rows; computed columns are kept beside it under their names.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import EntityType, VectorType, is_blob

Row = dict[str, Any]


class Refused(Exception):
    """The query has no answer: the product must refuse it too."""


@dataclass
class Binding:
    """One row of a running query."""

    entities: dict[str, Row] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)

    def identity(self) -> tuple:
        return tuple(sorted((var, row["id"]) for var, row in self.entities.items()))


class Reference:
    """Evaluates compiled reads over a database."""

    def __init__(self, catalog: Catalog, database: dict[str, list[Row]], parameters=None, now=None, provider=None):
        self.catalog = catalog
        self.database = database
        self.parameters = parameters or {}
        self.now = now or datetime.datetime.now(datetime.UTC)
        self.provider = provider

    def run(self, query: ir.ReadQuery) -> list[Row]:
        """The rows of a query, in order."""
        self.tables = {variable.name: variable.table_key for variable in query.variables}
        return [binding.columns for binding in self.rows(query.root, None)]

    # --- operators ----------------------------------------------------------------------------------------------

    def rows(self, op: ir.Operator, outer: Binding | None) -> list[Binding]:
        match op:
            case ir.Unit():
                return [Binding()]
            case ir.Outer(vars=names):
                return [Binding({name: outer.entities[name] for name in names})]
            case ir.Scan(var=var, table_key=table_key):
                return [Binding({var: row}) for row in self.database[table_key]]
            case ir.Join(left=left, right=right):
                return [
                    Binding({**one.entities, **two.entities})
                    for one in self.rows(left, outer)
                    for two in self.rows(right, outer)
                    if all(
                        one.entities[var]["id"] == two.entities[var]["id"] for var in one.entities.keys() & two.entities
                    )
                ]
            case ir.Expand():
                return self.expand(op, outer)
            case ir.Filter(input=below, predicate=predicate):
                return [b for b in self.rows(below, outer) if self.value(predicate, b) is True]
            case ir.AntiJoin(input=below, inner=inner):
                kept = []
                for binding in self.rows(below, outer):
                    around = Binding({**(outer.entities if outer else {}), **binding.entities})
                    if not self.rows(inner, around):
                        kept.append(binding)
                return kept
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
                    found.sort(key=lambda b: sort_key(self.named(b, name)))
                for key in reversed(keys):
                    found.sort(key=lambda b: sort_key(self.value(key.expr, b)), reverse=key.descending)
                return found
            case ir.Limit(input=below, count=count):
                return self.rows(below, outer)[: self.value(count, Binding())]
            case ir.Project(input=below, columns=columns):
                return [
                    Binding({}, {column.name: self.shown(column.expr, binding) for column in columns})
                    for binding in self.rows(below, outer)
                ]
        raise TypeError(op)

    def expand(self, op: ir.Expand, outer: Binding | None) -> list[Binding]:
        edge_type = self.catalog.table(f"edge:{op.edge}")
        edges = self.database[f"edge:{op.edge}"]
        one_kind = edge_type.source == edge_type.target
        targets = {row["id"]: row for row in self.database[op.to_table]}
        found = []
        for binding in self.rows(op.input, outer):
            start = binding.entities[op.from_var]["id"]
            if op.edge_var is not None:
                pairs = [(far, edge) for edge in edges for far in far_ends(edge, start, op.direction)]
            else:
                pairs = [(far, None) for far in reached(edges, start, op, one_kind)]
            for far, edge in pairs:
                if op.to_var in binding.entities and binding.entities[op.to_var]["id"] != far:
                    continue
                entities = {**binding.entities, op.to_var: targets[far]}
                if edge is not None:
                    entities[op.edge_var] = edge
                found.append(Binding(entities))
        return found

    def group(self, op: ir.GroupBy, below: list[Binding]) -> list[Binding]:
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
        if isinstance(aggregate.arg, ir.Entity):
            return len(members)
        values = [value for b in members if (value := self.value(aggregate.arg, b)) is not None]
        match aggregate.function:
            case ir.AggregateFunction.COUNT:
                return len(values)
            case ir.AggregateFunction.SUM:
                if values and isinstance(values[0], int):
                    return self.whole_sum(sum(values), str(aggregate.arg.type))
                return float(sum(map(Fraction, values))) if values else None
            case ir.AggregateFunction.AVG:
                return float(sum(map(Fraction, values)) / len(values)) if values else None
            case ir.AggregateFunction.MIN:
                return min(values, default=None)
            case ir.AggregateFunction.MAX:
                return max(values, default=None)

    def whole_sum(self, total: int, type_name: str) -> int:
        low, high = (0, 2**64 - 1) if type_name.startswith("U") else (-(2**63), 2**63 - 1)
        if not low <= total <= high:
            raise Refused(f"{total} does not fit")
        return total

    def fuse(self, below: list[Binding], ranking: ir.Rrf, column: str) -> list[Binding]:
        k = 60 if ranking.k is None else self.value(ranking.k, Binding())
        places = []
        for one in (ranking.first, ranking.second):
            entities = {b.entities[one.var]["id"]: b.entities[one.var] for b in below}
            scores = {id_: score for id_, row in entities.items() if (score := self.score(one, row)) is not None}
            best = sorted(scores, key=lambda id_: (scores[id_] if isinstance(one, ir.Nearest) else -scores[id_], id_))
            places.append((one.var, {id_: place for place, id_ in enumerate(best, start=1)}))
        for binding in below:
            parts = [1 / (k + p[b]) for var, p in places if (b := binding.entities[var]["id"]) in p]
            binding.columns[column] = sum(parts) if parts else None
        return below

    # --- expressions --------------------------------------------------------------------------------------------

    def named(self, binding: Binding, name: str) -> Any:
        if name in binding.columns:
            value = binding.columns[name]
            return value["id"] if isinstance(value, dict) else value
        return binding.entities[name]["id"]

    def value(self, expr: ir.Expr, b: Binding) -> Any:
        match expr:
            case ir.Literal(value=value):
                return list(value) if isinstance(value, tuple) else value
            case ir.Param(name=name):
                return self.parameters.get(name)
            case ir.Now():
                return self.now
            case ir.Prop(var=var, name=name):
                return b.entities[var].get(name)
            case ir.Entity(var=var):
                return b.entities[var]
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
            case ir.In():
                return True if one in two else (None if None in two else False)
        raise TypeError(expr)

    def shown(self, expr: ir.Expr, binding: Binding) -> Any:
        """A returned value: entities become objects."""
        value = self.value(expr, binding)
        table_key = None
        if isinstance(expr, ir.Entity):
            table_key = self.tables[expr.var]
        elif isinstance(expr, ir.ColumnRef) and isinstance(expr.type, EntityType):
            table_key = expr.type.table_key
        if table_key is None:
            return value
        shown = {"@id": value["id"]}
        for prop in self.catalog.table(table_key).properties:
            hidden = is_blob(prop.type) or isinstance(prop.type, VectorType)
            if not hidden and value.get(prop.name) is not None:
                shown[prop.name] = value[prop.name]
        return shown

    # --- search -------------------------------------------------------------------------------------------------

    def text_match(self, match: ir.TextMatch, b: Binding) -> bool:
        text, query = b.entities[match.var].get(match.property), self.value(match.query, b)
        if text is None or query is None:
            return False
        words, wanted = tokens(text), tokens(query)
        match match.predicate:
            case ir.TextPredicate.SEARCH:
                return any(token in words for token in wanted)
            case ir.TextPredicate.MATCH_TEXT:
                size = len(wanted)
                return size > 0 and any(words[i : i + size] == wanted for i in range(len(words) - size + 1))
        edits = None if match.edits is None else self.value(match.edits, b)
        allowed = {token: 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2 for token in wanted}
        if edits is not None:
            allowed = dict.fromkeys(wanted, edits)
        return any(edit_distance(token, word) <= allowed[token] for token in wanted for word in words)

    def score(self, ranking: ir.Nearest | ir.Bm25, row: Row) -> float | None:
        query = self.value(ranking.query, Binding())
        value = row.get(ranking.property)
        if query is None or value is None:
            return None
        if isinstance(ranking, ir.Nearest):
            if isinstance(query, str):
                query = self.provider.embed([query], dim=ranking.dim, model=None)[0]
            return cosine(value, query)
        texts = [
            tokens(r[ranking.property]) for r in self.database[ranking.table_key] if r.get(ranking.property) is not None
        ]
        average = sum(map(len, texts)) / len(texts)
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
        case ir.StartsWith(text=one, prefix=two) | ir.In(item=one, items=two):
            return one, two
    raise TypeError(expr)


def sort_key(value: Any) -> tuple:
    """Nulls first; entities by id."""
    return (0, 0) if value is None else (1, value["id"] if isinstance(value, dict) else value)


def hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return value["id"]
    return tuple(value) if isinstance(value, list) else value


def far_ends(edge: Row, start: str, direction: ir.Direction) -> list[str]:
    """The other ends of an edge seen from a node: one for each orientation that matches, a self-loop once."""
    found = []
    if direction is not ir.Direction.IN and edge["src"] == start:
        found.append(edge["dst"])
    if direction is not ir.Direction.OUT and edge["dst"] == start and not (found and edge["src"] == edge["dst"]):
        found.append(edge["src"])
    return found


def reached(edges: list[Row], start: str, op: ir.Expand, one_kind: bool) -> list[str]:
    """Breadth-first distances from one node, those within the bounds. Hops beyond the first need equal ends."""
    distance: dict[str, int] = {}
    level = [start]
    for hop in range(1, (op.max_hops if one_kind else 1) + 1):
        following = []
        for node in level:
            for edge in edges:
                for far in far_ends(edge, node, op.direction):
                    if one_kind and far == start:
                        if hop == 1:
                            distance.setdefault(far, 1)
                    elif far not in distance:
                        distance[far] = hop
                        following.append(far)
        level = following
    return [node for node, hops in distance.items() if hops >= op.min_hops]


def tokens(text: str) -> list[str]:
    lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in unicodedata.normalize("NFKC", text))
    return re.findall(r"[^\W_]+", lowered)


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
