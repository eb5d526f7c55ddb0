"""Operators of the IR as Spark frames: bindings are rows, joins are joins, a path is a bounded chain of joins.

Spark ignores the case of names and we do not, so every column of a frame has a made-up name; `Bindings` knows which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.predicates import conjuncts
from omnigraph.schema.types import EntityType, Scalar, ScalarType
from omnigraph.spark.aggregates import aggregate_rows
from omnigraph.spark.expressions import lower_expression, lower_predicate
from omnigraph.spark.needs import Needs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from omnigraph.spark.searching import Searching

Frames = Callable[[str, Sequence[str]], "DataFrame"]
"""The rows of a table at the snapshot, with these columns in this order."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Rows of a running query. `places` maps (variable, property) to a column; `computed` maps a computed name to one.

    A computed name that stands for an entity (a group key `$x`) is in `entities` instead, with its variable.
    """

    frame: DataFrame
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)

    @property
    def vars(self) -> set[str]:
        """The bound variables."""
        return {var for var, _ in self.places}

    def id(self, var: str) -> str:
        """The column that holds a variable's id."""
        return self.places[var, "id"]

    def of(self, var: str) -> dict[tuple[str, str], str]:
        """The columns of one variable."""
        return {key: name for key, name in self.places.items() if key[0] == var}

    def resolve(self, leaf: ir.Expr) -> Column:
        """The column of a leaf."""
        from pyspark.sql import functions as f

        match leaf:
            case ir.Prop(var=var):
                return f.col(self.places[var, leaf.column])
            case ir.Entity(var=var):
                return f.col(self.id(var))
            case ir.ColumnRef(name=name):
                return f.col(self.computed[name] if name in self.computed else self.id(self.entities[name]))
        raise InternalError(f"{leaf!r} is not a leaf of an expression")


class Lowering:
    """Lowers one query. `bind` replaces parameters and `now()` by their values."""

    def __init__(
        self,
        frames: Frames,
        one_row: DataFrame,
        needs: Needs,
        bind: Callable[[ir.Expr], ir.Expr],
        searching: Searching,
    ) -> None:
        self._frames = frames
        self._one_row = one_row
        self._needs = needs
        self._bind = bind
        self._searching = searching
        self._names = 0

    def lower(self, operator: ir.Operator, outer: Bindings | None = None) -> Bindings:
        """The rows of an operator. `outer` are the enclosing rows inside `not { }`."""
        match operator:
            case ir.Unit():
                return Bindings(self._one_row)
            case ir.Outer(vars=names):
                if outer is None:
                    raise InternalError("a block without an enclosing one refers to outer variables")
                return self._restricted(outer, names)
            case ir.Scan(var=var, table_key=table_key):
                return self._scan(var, table_key)
            case ir.Join(left=left, right=right):
                return self._join(self.lower(left, outer), self.lower(right, outer))
            case ir.Expand():
                return self._expand(operator, self.lower(operator.input, outer))
            case ir.Filter(input=below, predicate=predicate):
                return self._filter(self.lower(below, outer), predicate)
            case ir.AntiJoin():
                return self._anti(operator, self.lower(operator.input, outer))
            case ir.Rank(input=below, ranking=ranking, column=column):
                return self._rank(self.lower(below, outer), ranking, column)
            case ir.Fuse(input=below, ranking=ranking, column=column):
                return self._fuse(self.lower(below, outer), ranking, column)
            case ir.GroupBy():
                return self._group(operator, self.lower(operator.input, outer))
            case ir.Sort(input=below, keys=keys, tie_break=tie_break):
                return self._sort(self.lower(below, outer), keys, tie_break)
            case ir.Limit(input=below, count=count):
                rows = self.lower(below, outer)
                return replace(rows, frame=rows.frame.limit(int(self.constant(count or ir.Literal(2**31 - 1, None)))))
            case _:
                raise InternalError(f"{type(operator).__name__} cannot stand inside a query")

    def constant(self, expr: ir.Expr) -> Any:
        """The value of an expression that looks at no row."""
        bound = self._bind(expr)
        if not isinstance(bound, ir.Literal):
            raise InternalError(f"{expr!r} is not constant")
        return bound.value

    def column(self, rows: Bindings, expr: ir.Expr, type_: Any) -> Column:
        """The Spark column of an expression over these rows."""
        return lower_expression(self._bind(expr), type_, rows.resolve)

    # --- the conjunctive block -----------------------------------------------------------------------------------

    def _scan(self, var: str, table_key: str) -> Bindings:
        columns = self._needs.columns(var)
        names = [self._name() for _ in columns]
        frame = self._frames(table_key, columns).toDF(*names)
        return Bindings(frame, {(var, column): name for column, name in zip(columns, names)})

    def _join(self, left: Bindings, right: Bindings) -> Bindings:
        shared = sorted(left.vars & right.vars)
        if not shared:
            frame = left.frame.crossJoin(right.frame)
        else:
            frame = _joined_on(left.frame, right.frame, [(left.id(var), right.id(var)) for var in shared])
        return Bindings(frame, {**right.places, **left.places}, {**right.computed, **left.computed})

    def _filter(self, rows: Bindings, predicate: ir.Expr) -> Bindings:
        for part in conjuncts(predicate):
            if isinstance(part, ir.TextMatch):
                column = self._searching.matches(part, rows, self.constant)
            else:
                column = lower_predicate(self._bind(part), rows.resolve)
            rows = replace(rows, frame=rows.frame.where(column))
        return rows

    def _anti(self, operator: ir.AntiJoin, rows: Bindings) -> Bindings:
        inner = self.lower(operator.inner, rows)
        names = [self._name() for _ in operator.vars]
        found = inner.frame.select(*[inner.id(var) for var in operator.vars]).toDF(*names).distinct()
        pairs = [(rows.id(var), name) for var, name in zip(operator.vars, names)]
        return replace(rows, frame=_joined_on(rows.frame, found, pairs, how="left_anti"))

    def _restricted(self, outer: Bindings, names: Sequence[str]) -> Bindings:
        places = {key: column for key, column in outer.places.items() if key[0] in names}
        # Fresh names: the inner rows are joined with the outer ones again.
        fresh = {key: self._name() for key in places}
        frame = outer.frame.select(*places.values()).toDF(*fresh.values())
        return Bindings(frame.dropDuplicates([fresh[name, "id"] for name in names]), fresh)

    def _expand(self, step: ir.Expand, rows: Bindings) -> Bindings:
        if step.edge_var is not None:
            return self._expand_edges(step, rows)
        here, there = self._name(), self._name()
        if step.max_hops == 1:
            pairs = self._pairs(step.edge, step.direction).toDF(here, there)
        else:
            pairs = self._walk(step, rows).toDF(here, there)
        return self._bind_target(step, rows, pairs, here, there, {})

    def _expand_edges(self, step: ir.Expand, rows: Bindings) -> Bindings:
        assert step.edge_var is not None
        here, there = self._name(), self._name()
        columns = self._needs.columns(step.edge_var)
        names = [self._name() for _ in columns]
        parts = []
        for position, (start, end) in enumerate(_orientations(step.direction)):
            edges = self._frames(_edge_table(step.edge), ["src", "dst", *columns]).toDF("src", "dst", *names)
            if position:
                edges = edges.where("src <> dst")
            parts.append(edges.select(start, end, *names).toDF(here, there, *names))
        edges = reduce(lambda a, b: a.union(b), parts)
        places = {(step.edge_var, column): name for column, name in zip(columns, names)}
        return self._bind_target(step, rows, edges, here, there, places)

    def _bind_target(
        self,
        step: ir.Expand,
        rows: Bindings,
        pairs: DataFrame,
        here: str,
        there: str,
        places: Mapping[tuple[str, str], str],
    ) -> Bindings:
        """Join the (here, there) rows to the input, and give the target its columns."""
        keys = [(rows.id(step.from_var), here)]
        if step.to_bound or step.to_var in rows.vars:
            keys.append((rows.id(step.to_var), there))
            return replace(rows, frame=_joined_on(rows.frame, pairs, keys), places={**rows.places, **places})
        frame = _joined_on(rows.frame, pairs, keys)
        columns = self._needs.columns(step.to_var)
        if columns == ["id"]:
            return replace(rows, frame=frame, places={**rows.places, **places, (step.to_var, "id"): there})
        target = self._scan(step.to_var, step.to_table)
        frame = _joined_on(frame, target.frame, [(there, target.id(step.to_var))])
        return replace(rows, frame=frame, places={**rows.places, **places, **target.places})

    def _pairs(self, edge: str, direction: ir.Direction) -> DataFrame:
        parts = [
            self._frames(_edge_table(edge), ["src", "dst"]).toDF("src", "dst").select(start, end).toDF("here", "there")
            for start, end in _orientations(direction)
        ]
        return reduce(lambda a, b: a.union(b), parts).distinct()

    def _walk(self, step: ir.Expand, rows: Bindings) -> DataFrame:
        """(source, node) pairs by breadth-first distance, from the sources that the input has."""
        from pyspark.sql import functions as f

        steps = self._pairs(step.edge, step.direction).localCheckpoint()
        sources = rows.frame.select(rows.id(step.from_var)).toDF("source").distinct().localCheckpoint()
        seen = sources.select("source", f.col("source").alias("node"), f.lit(0).alias("distance"))
        frontier = seen.select("source", "node")
        loops = None
        for hop in range(1, step.max_hops + 1):
            met = frontier.join(steps, frontier["node"] == steps["here"]).select("source", f.col("there").alias("node"))
            if hop == 1:
                loops = met.where("source = node").distinct()
            frontier = met.distinct().join(seen, ["source", "node"], "left_anti").localCheckpoint()
            if frontier.isEmpty():
                break
            seen = seen.union(frontier.select("source", "node", f.lit(hop).alias("distance")))
        found = seen.where(f.col("distance") >= step.min_hops).select("source", "node")
        return found.union(loops) if step.min_hops == 1 and loops is not None else found

    # --- above the block -----------------------------------------------------------------------------------------

    def _rank(self, rows: Bindings, ranking: ir.Nearest | ir.Bm25, column: str) -> Bindings:
        return self._computed(rows, column, self._searching.score(ranking, rows, self.constant))

    def _fuse(self, rows: Bindings, ranking: ir.Rrf, column: str) -> Bindings:
        frame, score = self._searching.fused(ranking, rows, self.constant, self._name)
        return self._computed(replace(rows, frame=frame), column, score)

    def _computed(self, rows: Bindings, name: str, column: Column) -> Bindings:
        made = self._name()
        return replace(rows, frame=rows.frame.withColumn(made, column), computed={**rows.computed, name: made})

    def _group(self, operator: ir.GroupBy, rows: Bindings) -> Bindings:
        places: dict[tuple[str, str], str] = {}
        computed: dict[str, str] = {}
        entities: dict[str, str] = {}
        keys: list[Column] = []
        for key in operator.keys:
            if isinstance(key.expr, ir.Entity):
                own = rows.of(key.expr.var)
                places.update(own)
                entities[key.name] = key.expr.var
            else:
                computed[key.name] = self._name()
                keys.append(self.column(rows, key.expr, key.type).alias(computed[key.name]))
        names = [self._name() for _ in operator.aggregates]
        computed.update({column.name: name for column, name in zip(operator.aggregates, names, strict=True)})
        carried = [_column(name) for name in places.values()]
        if not operator.aggregates:
            return Bindings(rows.frame.select(*carried, *keys).distinct(), places, computed, entities)
        frame = aggregate_rows(rows.frame, [*carried, *keys], operator.aggregates, names, rows.resolve)
        return Bindings(frame, places, computed, entities)

    def _sort(self, rows: Bindings, keys: Sequence[ir.SortKey], tie_break: Sequence[str]) -> Bindings:
        order = []
        for key in keys:
            column = self.column(rows, key.expr, getattr(key.expr, "type", ScalarType(Scalar.BOOL)))
            order.append(column.desc_nulls_last() if key.descending else column.asc_nulls_first())
        for name in tie_break:
            leaf: ir.Expr = (
                ir.Entity(name, EntityType(""))
                if (name, "id") in rows.places
                else ir.ColumnRef(name, ScalarType(Scalar.STRING))
            )
            order.append(rows.resolve(leaf).asc_nulls_first())
        return replace(rows, frame=rows.frame.orderBy(*order)) if order else rows

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"


def _edge_table(edge: str) -> str:
    return edge if edge.startswith("edge:") else f"edge:{edge}"


def _orientations(direction: ir.Direction) -> list[tuple[str, str]]:
    """From which end of an edge to which it is followed."""
    out, back = ("src", "dst"), ("dst", "src")
    return {ir.Direction.OUT: [out], ir.Direction.IN: [back], ir.Direction.BOTH: [out, back]}[direction]


def _joined_on(left: DataFrame, right: DataFrame, pairs: Sequence[tuple[str, str]], how: str = "inner") -> DataFrame:
    condition = reduce(lambda a, b: a & b, [_column(a) == _column(b) for a, b in pairs])
    return left.join(right, condition, how)


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(name)
