"""Which form each edge type of a plan is followed in, by cost, and which tables are numbered as a whole because of it.

Costs are rough microseconds. A topology that is in the cache costs nothing. One that is not is built when it pays for
this query alone, or when look-ups of earlier queries on the same table have already cost as much as the building would:
so nobody ever pays more than twice what the better choice would have cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.config import settings
from omnigraph.query import ir
from omnigraph.read.plan.statistics import is_identity
from omnigraph.read.plan.steps import EDGE_STEPS, EdgeStep, ExistsStep, ExpandStep, Plan, ScanStep, every_step_of
from omnigraph.read.plan.top import top_scan
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog, EdgeType


class TraversalMode(StrEnum):
    """How an edge type is followed: by asking the edge table, or in memory."""

    INDEXED = "indexed"
    CSR = "csr"


LOOKUP = 1000.0
"""One question to an edge table, whatever its size."""
LOOKUP_NODE = 200.0
"""Each node that is asked for: its page of the index, and its edges, which lie anywhere in the table."""
SCAN_EDGE = 0.1
"""Each edge, when there is no index to ask, or when so many nodes are asked for that reading all edges is quicker."""
FOUND_EDGE = 2.0
"""Each edge that comes back: its ids are text and have to be numbered."""
BUILD_EDGE = 0.4
"""Each edge, to build the adjacency."""
SEARCHED_SHARE = 64
"""A ranking over one row in so many is computed from the column in memory."""
SCAN_ID = 0.05
"""Each node, when there is no index to ask for an id."""
READ_ID = 0.5
"""Each node, to read and sort the ids."""


@dataclass(frozen=True, slots=True)
class EdgeChoice:
    """How one edge type is followed, and what both ways would cost in microseconds."""

    mode: TraversalMode
    indexed_cost: float
    csr_cost: float
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """The physical choices of one run."""

    edges: Mapping[str, EdgeChoice]
    in_memory: frozenset[str]

    @property
    def csr_edges(self) -> frozenset[str]:
        """Edge tables that are followed in memory."""
        return frozenset(edge for edge, choice in self.edges.items() if choice.mode is TraversalMode.CSR)


def choose(plan: Plan, reader: TableReader, catalog: Catalog, caches: ReadCaches) -> Choices:
    """The forms for all edge types of a plan."""
    mode_setting = settings().traversal_mode
    forced = TraversalMode(mode_setting) if mode_setting else None
    every = every_step_of(plan)
    steps = [step for step in every if isinstance(step, EDGE_STEPS)]
    choices: dict[str, EdgeChoice] = {}
    for edge in dict.fromkeys(edge for step in steps for edge in step.atom.edges):
        own = [step for step in steps if edge in step.atom.edges]
        indexed = sum(_indexed_cost(step, edge, reader) for step in own)
        csr = _csr_cost(edge, reader, catalog, caches)
        spent = caches.spent.get(reader.state(edge), 0.0)
        by_cost = TraversalMode.CSR if csr <= indexed + spent else TraversalMode.INDEXED
        choices[edge] = EdgeChoice(forced or by_cost, indexed, csr, forced is not None)
    in_memory: set[str] = set()
    for edge, choice in choices.items():
        if choice.mode is TraversalMode.CSR:
            in_memory |= {edge, *_node_tables(edge, catalog)}
    for step in every:
        if isinstance(step, ScanStep):
            in_memory |= {key for key in step.tables if _wants_all(step, key, plan, reader, catalog, caches)}
    return Choices(choices, frozenset(in_memory))


def _wants_all(
    step: ScanStep, table_key: str, plan: Plan, reader: TableReader, catalog: Catalog, caches: ReadCaches
) -> bool:
    """Whether a scanned table is better numbered as a whole: it is already, or a search looks at a good part of it."""
    if caches.nodes.peek(reader.state(table_key)) is not None:
        return True
    if _asks_for_one(step, table_key, catalog):
        knows = reader.knows_ids(table_key)
        if knows or not reader.is_indexed(table_key, "id"):
            rows = reader.row_count(table_key)
            state = reader.state(table_key)
            if caches.spent.get(state, 0.0) >= LOOKUP + READ_ID * rows:
                return True
            if not knows:
                # Without an index the whole column is read each time: soon the ids are better kept.
                caches.spend(state, LOOKUP + SCAN_ID * rows)
    if any(top is not None and top.step is step for top in map(top_scan, plan.stages)):
        return False
    ranked = {ranking.var for operator in plan.upper for ranking in rankings(operator)}
    return step.var in ranked and step.rows * SEARCHED_SHARE >= reader.row_count(table_key)


def _asks_for_one(step: ScanStep, table_key: str, catalog: Catalog) -> bool:
    """Whether a scan is a look-up by key."""
    return any(
        isinstance(predicate, ir.Compare)
        and predicate.op is ir.CompareOp.EQ
        and any(
            isinstance(side, ir.Prop) and is_identity(catalog, table_key, side.column)
            for side in (predicate.left, predicate.right)
        )
        for predicate in step.filters
    )


def rankings(operator: ir.Operator) -> tuple[ir.Nearest | ir.Bm25, ...]:
    """The rankings that an operator computes."""
    if isinstance(operator, ir.Rank):
        return (operator.ranking,)
    return (operator.ranking.first, operator.ranking.second) if isinstance(operator, ir.Fuse) else ()


def _indexed_cost(step: EdgeStep, edge: str, reader: TableReader) -> float:
    edges = reader.row_count(edge)
    hops = 1 if isinstance(step, ExistsStep) else step.atom.max_hops
    reached = step.rows if isinstance(step, ExpandStep) else step.sources
    # The last frontier is not asked; the ones between grow towards the rows that come out.
    asked = step.sources if hops == 1 else step.sources + (hops - 1) * max(reached, step.sources)
    column = "dst" if step.direction is ir.Direction.IN else "src"
    found = FOUND_EDGE * min(max(reached, asked), edges)
    # Many nodes are found by reading the table once a hop, index or not.
    read = hops * SCAN_EDGE * edges
    return hops * LOOKUP + (min(LOOKUP_NODE * asked, read) if reader.is_indexed(edge, column) else read) + found


def _csr_cost(edge: str, reader: TableReader, catalog: Catalog, caches: ReadCaches) -> float:
    cost = 0.0
    if caches.topologies.peek(reader.state(edge)) is None:
        cost += LOOKUP + BUILD_EDGE * reader.row_count(edge)
    for table_key in _node_tables(edge, catalog):
        if caches.nodes.peek(reader.state(table_key)) is None:
            cost += LOOKUP + READ_ID * reader.row_count(table_key)
    return cost


def _node_tables(edge: str, catalog: Catalog) -> set[str]:
    edge_type = catalog.table(edge)
    assert isinstance(edge_type, EdgeType)
    return {f"node:{edge_type.source}", f"node:{edge_type.target}"}
