"""Traversals as joins: one hop is a join with the edges, a walk is a bounded chain of joins of a frontier.

A node on the way is its id, or, where a traversal meets nodes of several types, a struct of its id and the name of its
type: the two forms of a key (see bindings.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.query import ir
from omnigraph.spark.query.bindings import KEY, TYPE, Bindings, Names, column, joined_on, made_node, type_name
from omnigraph.spark.query.joins.stopping import Stopping
from omnigraph.spark.query.needs import Field, fields_in
from omnigraph.spark.query.tables import Tables, union

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Kept = Callable[["DataFrame", ir.Expr, Mapping[str, "Column"]], "DataFrame"]
"""The edges for which a condition holds; their fields by name."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """How nodes are written on one side of a traversal: `types` that may stand there, `mixed` when with their type."""

    types: frozenset[str]
    mixed: bool


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked at of edges besides their properties."""

    here: bool = True
    there: bool = True
    key: bool = True


@dataclass(frozen=True, slots=True)
class _Hop:
    """Edges, the columns of the nodes that they lead from and to, and those of what a hop binds besides them."""

    edges: DataFrame
    here: str
    there: str
    places: dict[tuple[str, str], str]


_PAIRS = _Wanted(key=False)
_EVERYTHING = _Wanted()


class Walks:
    """The traversals of one query."""

    def __init__(self, tables: Tables, names: Names, kept: Kept, stopping: Stopping) -> None:
        self._tables = tables
        self._stopping = stopping
        self._names = names
        self._kept = kept

    def expand(self, step: ir.Expand, rows: Bindings) -> Bindings:
        """The rows with what a traversal reaches from them."""
        start, end = self._side(step.from_var, None), self._side(step.to_var, step.all_to_tables)
        if step.max_hops == 1:
            return self._one_hop(step, rows, start, end)
        return self._many_hops(step, rows, start, end)

    def _side(self, var: str, tables: Sequence[str] | None) -> _Nodes:
        known = self._tables.variables
        ranges = known.tables(var) if tables is None else [each for each in tables if each in known.tables(var)]
        return _Nodes(frozenset(type_name(each) for each in ranges), known.is_mixed(var))

    def begin(self, step: ir.Expand) -> Bindings:
        """The rows of a single hop from any node of some types: the edges, whose ends are known to be there."""
        assert isinstance(step.input, ir.Scan)
        start = self._side(step.from_var, step.input.all_tables)
        end = self._side(step.to_var, step.all_to_tables)
        hop = self._hop(step, start, end, here=self._tables.identities.told_apart(step.from_var))
        places = {(step.from_var, KEY): hop.here} if self._tables.identities.told_apart(step.from_var) else {}
        return self._with_target(step, Bindings(hop.edges, {**places, **hop.places}), hop.there)

    # --- one hop -------------------------------------------------------------------------------------------------

    def _one_hop(self, step: ir.Expand, rows: Bindings, start: _Nodes, end: _Nodes) -> Bindings:
        hop = self._hop(step, start, end, here=True)
        return self._bind_target(step, rows, hop.edges, hop.here, hop.there, hop.places)

    def _hop(self, step: ir.Expand, start: _Nodes, end: _Nodes, *, here: bool) -> _Hop:
        """The edges of a hop under names of their own. `here`: whether the nodes they lead from are looked at."""
        from_, to = self._names(), self._names()
        if step.edge_var is not None:
            told_apart = self._tables.identities.told_apart
            fields = self._tables.edge_fields(step.edge_var)
            there = step.to_bound or told_apart(step.to_var) or not self._tables.needs_only_key(step.to_var)
            wanted = _Wanted(here=here, there=there, key=told_apart(step.edge_var))
            key, *names = [self._names() for _ in (step, *fields)]
            edges = self._edges(step, start, end, [from_, to, key, *names], fields, wanted)
            places = {(step.edge_var, f.place): name for f, name in zip(fields, names)}
            if wanted.key:
                places[step.edge_var, KEY] = key
            return _Hop(edges, from_, to, places)
        if step.path_var is None:
            return _Hop(self._edges(step, start, end, [from_, to]).distinct(), from_, to, {})
        least = self._first_edges(self._edges(step, start, end, ["here", "there", "edge"], []))
        edges, places = self._with_path(step, self._path_of_one_hop(step, least, start, end), from_, to)
        return _Hop(edges, from_, to, places)

    def _edges(
        self,
        step: ir.Expand,
        start: _Nodes,
        end: _Nodes,
        names: Sequence[str],
        fields: Sequence[Field] | None = None,
        wanted: _Wanted | None = None,
    ) -> DataFrame:
        """Where edges lead from and to, one row for each way an edge is followed; with fields, its key and those: under
        these names. What is not `wanted` is null.
        """
        parts = []
        wanted = wanted or (_PAIRS if fields is None else _EVERYTHING)
        where = [] if step.where is None else [field for _, field in fields_in(step.where)]
        for table_key, source, target in self._tables.edge_tables(step):
            for turn, (first, second) in enumerate(_orientations(step.direction, source, target)):
                if first[1] not in start.types or second[1] not in end.types:
                    continue
                once = bool(turn) and fields is not None
                own = [
                    name
                    for name, is_read in (
                        (first[0], wanted.here or once),
                        (second[0], wanted.there or once),
                        ("id", wanted.key or step.where is not None),
                    )
                    if is_read
                ]
                bound = None if step.edge_var is None else (step, step.edge_var)
                looked_at = [*(fields or []), *where]
                own = own if own or looked_at else [first[0]]
                made, edges = self._tables.read(table_key, own, looked_at, bound)
                read = dict(zip(own, made))
                behind = made[len(own) :]
                if step.where is not None:
                    seen = {field.name: c for field, c in zip(where, behind[len(fields or []) :])}
                    seen |= {KEY: read["id"], TYPE: _text(type_name(table_key))}
                    edges = self._kept(edges, step.where, seen)
                if once:
                    edges = edges.where(read["src"] != read["dst"])
                nodes = [
                    made_node(read[name] if name in read else _nothing(), type_, mixed=side.mixed)
                    for (name, type_), side in ((first, start), (second, end))
                ]
                if fields is not None:
                    key = read["id"] if "id" in read else _nothing()
                    nodes.append(made_node(key, type_name(table_key), mixed=self._has_mixed_edges(step)))
                    nodes += behind[: len(fields)]
                parts.append(edges.select(*[each.alias(name) for each, name in zip(nodes, names, strict=True)]))
        return union(parts) if parts else self._no_edges(step, start, end, names, fields)

    def _no_edges(
        self, step: ir.Expand, start: _Nodes, end: _Nodes, names: Sequence[str], fields: Sequence[Field] | None
    ) -> DataFrame:
        """None of the edge types fits: the right columns without a row."""
        table_key = self._tables.edge_tables(step)[0][0]
        own, edges = self._tables.read(table_key, ["src", "dst", "id"], fields or [])
        made = [made_node(own[0], "", mixed=start.mixed), made_node(own[1], "", mixed=end.mixed)]
        if fields is not None:
            made += [made_node(own[2], "", mixed=self._has_mixed_edges(step)), *own[3:]]
        return edges.where("false").select(*[each.alias(name) for each, name in zip(made, names, strict=True)])

    def _has_mixed_edges(self, step: ir.Expand) -> bool:
        known = self._tables.variables
        return len(step.all_edges) > 1 if step.edge_var is None else known.is_mixed(step.edge_var)

    def _bind_target(
        self,
        step: ir.Expand,
        rows: Bindings,
        pairs: DataFrame,
        here: str,
        there: str,
        places: dict[tuple[str, str], str],
    ) -> Bindings:
        """Join the (here, there) rows to the input, and give the target its columns."""
        start = rows.key(step.from_var)
        if rows.met:
            # Rows of a table lead to those of one node each, and come in batches, between which Spark looks itself.
            rows = self._stopping.asked(rows)
        keys = [(start, here)]
        is_bound = step.to_bound or step.to_var in rows.vars
        if is_bound:
            keys.append((rows.key(step.to_var), there))
        frame = joined_on(rows.frame, pairs, keys)
        joined = replace(rows, frame=frame, places={**rows.places, **places}, met=(start, here))
        return joined if is_bound else self._with_target(step, joined, there)

    def _with_target(self, step: ir.Expand, rows: Bindings, there: str) -> Bindings:
        """The rows with the columns of the node that a traversal leads to."""
        if self._tables.needs_only_key(step.to_var):
            is_read = step.edge_var is None or self._tables.identities.told_apart(step.to_var)
            return replace(rows, places={**rows.places, **({(step.to_var, KEY): there} if is_read else {})})
        target = self._tables.scan(step.to_var, step.all_to_tables, step)
        frame = joined_on(rows.frame, target.frame, [(there, target.key(step.to_var))])
        return replace(rows, frame=frame, places={**rows.places, **target.places})

    # --- walks ---------------------------------------------------------------------------------------------------

    def _many_hops(self, step: ir.Expand, rows: Bindings, start: _Nodes, end: _Nodes) -> Bindings:
        here, there = self._names(), self._names()
        nodes = self._on_the_way(step, start, end)
        sources = rows.frame.select(_written(column(rows.key(step.from_var)), start, nodes)).toDF("source")
        sources = sources.where("source is not null").distinct().localCheckpoint(eager=False)
        if step.path_var is None:
            edges = self._edges(step, nodes, nodes, ["here", "there"]).distinct().localCheckpoint(eager=False)
            found = _reached(sources, edges, step)
        else:
            edges = self._edges(step, nodes, nodes, ["here", "there", "edge"], []).localCheckpoint(eager=False)
            found = _least_walks(sources, edges, step)
        if nodes.mixed:
            found = _of_types(_of_types(found, "source", start), "node", end)
        ends = [_written(column("source"), nodes, start), _written(column("node"), nodes, end)]
        found = found.select(*ends, *found.columns[2:])
        if step.path_var is None:
            return self._bind_target(step, rows, found.toDF(here, there), here, there, {})
        found = _ids_of_walks(found.toDF("here", "there", "nodes", "edges"), nodes.mixed, len(step.all_edges) > 1)
        frame, places = self._with_path(step, found, here, there)
        return self._bind_target(step, rows, frame, here, there, places)

    def _on_the_way(self, step: ir.Expand, start: _Nodes, end: _Nodes) -> _Nodes:
        """The nodes that a walk may meet."""
        types = {name for _, source, target in self._tables.edge_tables(step) for name in (source, target)}
        return _Nodes(frozenset(types), len(types | start.types | end.types) > 1)

    # --- paths ---------------------------------------------------------------------------------------------------

    def _first_edges(self, edges: DataFrame) -> DataFrame:
        """Of several edges between two nodes the least."""
        from pyspark.sql import functions as f

        return edges.groupBy("here", "there").agg(f.min("edge").alias("edge"))

    def _path_of_one_hop(self, step: ir.Expand, edges: DataFrame, start: _Nodes, end: _Nodes) -> DataFrame:
        from pyspark.sql import functions as f

        ends = [_id(column("here"), start.mixed), _id(column("there"), end.mixed)]
        if step.path_start == step.to_var and step.to_var != step.from_var:
            ends.reverse()
        edge = _id(column("edge"), len(step.all_edges) > 1)
        return edges.select("here", "there", f.array(*ends).alias("nodes"), f.array(edge).alias("edges"))

    def _with_path(
        self, step: ir.Expand, found: DataFrame, here: str, there: str
    ) -> tuple[DataFrame, dict[tuple[str, str], str]]:
        """Rows of (here, there, nodes, edges) with the parts of the path under names of their own."""
        from pyspark.sql import functions as f

        assert step.path_var is not None
        nodes, edges, hops = self._names(), self._names(), self._names()
        frame = found.toDF(here, there, nodes, edges).withColumn(hops, f.size(edges).cast("bigint"))
        parts = {ir.PathPart.NODES: nodes, ir.PathPart.EDGES: edges, ir.PathPart.HOPS: hops}
        return frame, {(step.path_var, part.value): name for part, name in parts.items()}


def _reached(sources: DataFrame, steps: DataFrame, step: ir.Expand) -> DataFrame:
    """(source, node) pairs by breadth-first distance."""
    from pyspark.sql import functions as f

    seen = sources.select("source", f.col("source").alias("node"), f.lit(0).alias("distance"))
    frontier = seen.select("source", "node")
    loops = None
    for hop in range(1, step.max_hops + 1):
        met = frontier.join(steps, frontier["node"] == steps["here"]).select("source", f.col("there").alias("node"))
        if hop == 1:
            loops = met.where("source = node").distinct()
        frontier = met.distinct().join(seen, ["source", "node"], "left_anti").localCheckpoint(eager=False)
        if hop < step.max_hops and frontier.isEmpty():
            break
        seen = seen.union(frontier.select("source", "node", f.lit(hop).alias("distance")))
    found = seen.where(f.col("distance") >= step.min_hops).select("source", "node")
    return found.union(loops) if step.min_hops == 1 and loops is not None else found


def _least_walks(sources: DataFrame, steps: DataFrame, step: ir.Expand) -> DataFrame:
    """(source, node, nodes, edges): for each reached node the least of the shortest walks, as a list of its nodes and
    one of its edges, from the path's start.

    A part of a least walk, from either end, is the least walk of its own ends. So each hop keeps one walk for each
    pair, and a longer one is made of kept ones, whichever end the lists begin at.
    """
    from pyspark.sql import functions as f

    backwards = step.path_start == step.to_var and step.to_var != step.from_var

    def longer(walk: str, more: str) -> Column:
        one = f.array(f.col(more))
        return f.concat(one, f.col(walk)) if backwards else f.concat(f.col(walk), one)

    edge_type = dict(steps.dtypes)["edge"]
    frontier = sources.select(
        "source",
        f.col("source").alias("node"),
        f.array("source").alias("nodes"),
        f.array().cast(f"array<{edge_type}>").alias("edges"),
    )
    seen = frontier.select("source", "node")
    kept = []
    for hop in range(1, step.max_hops + 1):
        met = frontier.join(steps, frontier["node"] == steps["here"]).select(
            "source",
            f.col("there").alias("node"),
            f.struct(longer("nodes", "there").alias("nodes"), longer("edges", "edge").alias("edges")).alias("walk"),
        )
        least = met.groupBy("source", "node").agg(f.min("walk").alias("walk"))
        least = least.select("source", "node", "walk.nodes", "walk.edges")
        if hop == 1:
            least = least.localCheckpoint(eager=False)
            loops = least.where("source = node")
            if step.min_hops == 1:
                kept.append(loops)
        frontier = least.join(seen, ["source", "node"], "left_anti").localCheckpoint(eager=False)
        if hop < step.max_hops and frontier.isEmpty():
            break
        seen = seen.union(frontier.select("source", "node"))
        if hop >= step.min_hops:
            kept.append(frontier)
    return union(kept) if kept else frontier


def _of_types(found: DataFrame, name: str, side: _Nodes) -> DataFrame:
    return found.where(column(name).getField("type").isin(sorted(side.types)))


def _written(node: Column, given: _Nodes, wanted: _Nodes) -> Column:
    """A node in the form of another place. Where a type is left out it is that of the only type there."""
    from pyspark.sql import functions as f

    if given.mixed == wanted.mixed:
        return node
    if wanted.mixed:
        (only,) = given.types
        return f.when(node.isNotNull(), made_node(node, only, mixed=True))
    (only,) = wanted.types
    return f.when(node.getField("type") == f.lit(only), node.getField("id"))


def _ids_of_walks(found: DataFrame, mixed_nodes: bool, mixed_edges: bool) -> DataFrame:
    from pyspark.sql import functions as f

    def ids(name: str, mixed: bool) -> Column:
        return f.transform(name, lambda each: each.getField("id")) if mixed else f.col(name)

    return found.select("here", "there", ids("nodes", mixed_nodes), ids("edges", mixed_edges))


def _id(node: Column, mixed: bool) -> Column:
    return node.getField("id") if mixed else node


def _orientations(direction: ir.Direction, source: str, target: str) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """From which end of an edge to which it is followed: each end as its column and the type of its nodes."""
    out = (("src", source), ("dst", target))
    back = (out[1], out[0])
    return {ir.Direction.OUT: [out], ir.Direction.IN: [back], ir.Direction.BOTH: [out, back]}[direction]


def _nothing() -> Column:
    from pyspark.sql import functions as f

    return f.expr("cast(null as string)")


def _text(value: str) -> Column:
    from pyspark.sql import functions as f

    return f.lit(value)
