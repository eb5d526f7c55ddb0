"""The door to reading: run a compiled query on a snapshot, or explain how it would run."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyarrow as pa

from omnigraph.config import settings
from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.errors import HistoryGap
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.read.codes.arrays import bytes_taken
from omnigraph.read.operators.execute import execute
from omnigraph.read.operators.project import project
from omnigraph.read.plan.choice import Choices, TraversalMode, choose
from omnigraph.read.plan.needs import carried_columns, shown_properties
from omnigraph.read.plan.planner import plan_query
from omnigraph.read.plan.statistics import Statistics, magnitude, text_matches
from omnigraph.read.plan.steps import Plan
from omnigraph.read.result.explain import Explanation, explain
from omnigraph.read.result.result import BATCH_ROWS, Result
from omnigraph.read.search.row_sets import covered_matches, table_truth
from omnigraph.read.state.control import CancelToken, MemoryBudget, StopSign, within_memory
from omnigraph.read.state.profile import Profile
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.arrow_types import result_schema
from omnigraph.read.tables.caches import ReadCaches, caches_of
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import ListType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot
    from omnigraph.read.tables.stored import StoredTables


class Means(TypedDict, total=False):
    """What one run has: the memory that it may hold, whom it asks outside, and what time it is."""

    memory_limit: int | None
    provider: EmbeddingProvider | None
    now: datetime.datetime | None
    """What `now()` is."""


class Limits(Means, total=False):
    """What a caller may say about one run: also who stops it, and how long it may take."""

    cancel: CancelToken | None
    timeout: float | None
    """In seconds."""


def run_query(
    store: GraphStore,
    snapshot: Snapshot,
    catalog: Catalog,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Run a read on a snapshot. Every table it looks at is the one that the snapshot pins."""
    return prepare_query(store, snapshot, catalog, compiled, params, **limits).result()


def prepare_query(
    store: GraphStore,
    snapshot: Snapshot,
    catalog: Catalog,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    **limits: Unpack[Limits],
) -> StoredRead:
    """A read on a snapshot up to where the first table is read."""
    from omnigraph.read.tables.stored import StoredTables

    caches = caches_of(store)
    stop, means = _parted(limits)
    reader = StoredTables(store.tables, snapshot.tables, caches, stop.check)
    with _gaps_told(snapshot):
        prepared = prepare_on(reader, catalog, caches, compiled, params, stop=stop, **means)
    return StoredRead(snapshot, reader, prepared)


@dataclass(frozen=True, slots=True)
class StoredRead:
    """A read on a snapshot that is planned and has not begun."""

    snapshot: Snapshot
    reader: StoredTables
    prepared: Prepared

    def result(self) -> Result:
        """Run it."""
        with _gaps_told(self.snapshot):
            return self.prepared.result()


@contextmanager
def _gaps_told(snapshot: Snapshot) -> Iterator[None]:
    """Tables that are gone are told as what they are to a reader: a commit that can be read no more."""
    from omnigraph.storage.lance_errors import TableNotFound

    try:
        yield
    except TableNotFound as gone:
        commit_id = snapshot.head.graph_commit_id
        raise HistoryGap(
            f"rows of commit {commit_id} do not exist any more: cleanup has removed them. Read a newer commit; if this "
            "is the newest one, run `omnigraph verify`",
            graph_commit_id=commit_id,
        ) from gone


def explain_query(
    store: GraphStore,
    snapshot: Snapshot,
    catalog: Catalog,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    *,
    analyze: bool = False,
    **limits: Unpack[Limits],
) -> Explanation:
    """The plan of a read. With `analyze` the query is run, and the plan shows real row counts and times."""
    from omnigraph.read.tables.stored import StoredTables

    caches = caches_of(store)
    reader = StoredTables(store.tables, snapshot.tables, caches)
    if not analyze:
        parameters = {} if params is None else bind_parameters(compiled.parameters, params)
        plan, choices = _planned(reader, catalog, caches, compiled, parameters)
        return explain(plan, choices, None)
    found = run_on(reader, catalog, caches, compiled, params, **limits).explain()
    assert found is not None
    return found


def run_on(
    reader: TableReader,
    catalog: Catalog,
    caches: ReadCaches,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Run a read over any tables."""
    stop, means = _parted(limits)
    return prepare_on(reader, catalog, caches, compiled, params, stop=stop, **means).result()


def _parted(limits: Limits) -> tuple[StopSign, Means]:
    """What stops a run, which its tables are told too, and the rest."""
    stop = StopSign(limits.get("cancel"), limits.get("timeout"))
    return stop, {
        "memory_limit": limits.get("memory_limit"),
        "provider": limits.get("provider"),
        "now": limits.get("now"),
    }


@dataclass(frozen=True, slots=True)
class Prepared:
    """A read whose plan is made, over any tables."""

    run: Run
    plan: Plan
    choices: Choices

    def result(self) -> Result:
        """Run it."""
        run, choices = self.run, self.choices
        for edge, choice in choices.edges.items():
            if choice.mode is TraversalMode.INDEXED:
                run.caches.spend(run.reader.state(edge), choice.indexed_cost)
        with within_memory(run.memory):
            return _result(run, self.plan, choices, run.catalog)


def prepare_on(
    reader: TableReader,
    catalog: Catalog,
    caches: ReadCaches,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    *,
    stop: StopSign,
    **means: Unpack[Means],
) -> Prepared:
    """The plan of a read over any tables, and the state that it runs in."""
    memory_limit = means.get("memory_limit")
    parameters = bind_parameters(compiled.parameters, params or {})
    profile = Profile()
    started = time.perf_counter()
    plan, choices = _planned(reader, catalog, caches, compiled, parameters)
    profile.planning_seconds = time.perf_counter() - started
    _, carried, shown = caches.carried.get(
        id(plan), lambda: (plan, carried_columns(plan, catalog), shown_properties(plan, catalog))
    )
    run = Run(
        reader=reader,
        catalog=catalog,
        caches=caches,
        parameters=parameters,
        now=means.get("now") or datetime.datetime.now(datetime.UTC),
        stop=stop,
        memory=MemoryBudget(memory_limit if memory_limit is not None else settings().query_memory),
        profile=profile,
        variables=plan.variables,
        text_truth=table_truth,
        in_memory=choices.in_memory,
        csr_edges=choices.csr_edges,
        carried=carried,
        shown=shown,
        provider=means.get("provider"),
    )
    return Prepared(run, plan, choices)


def _result(run: Run, plan: Plan, choices: Choices, catalog: Catalog) -> Result:
    frame = execute(run, plan)
    columns = plan.query.root.columns
    schema = result_schema(plan.query.columns, catalog)

    def make_rows(start: int, stop: int) -> pa.RecordBatch:
        with within_memory(run.memory):
            rows = project(run, frame.slice(start, stop), columns, schema)
            run.memory.expect("the rows of the result", bytes_taken(rows))
            return rows

    made = None
    if 0 < frame.length <= BATCH_ROWS:
        # Small results are made at once, so that they outlive the graph they came from.
        made = partial(_part, make_rows(0, frame.length))
    return Result(
        plan.query.columns,
        schema,
        frame.length,
        made or make_rows,
        lambda: explain(plan, choices, run.profile),
    )


def _part(rows: pa.RecordBatch, start: int, stop: int) -> pa.RecordBatch:
    return rows if stop - start == rows.num_rows else rows.slice(start, stop - start)


def _planned(
    reader: TableReader,
    catalog: Catalog,
    caches: ReadCaches,
    compiled: ir.ReadQuery,
    parameters: Mapping[str, Any],
) -> tuple[Plan, Choices]:
    """The plan, from the cache when the query is the same and its tables have about as many rows as they had; the
    choices are made for each run.

    So who reads beside writers does not plan anew after each commit. Where text predicates stand beside other
    variables, how rare their words are is part of the plan, which then is one for these very tables; so is the order of
    magnitude of how many values each list among the parameters has.
    """
    # A compiled query is known by identity; what is kept holds on to it, so the identity stays its own.
    _, searches = caches.searches.get(id(compiled), lambda: (compiled, text_matches(compiled)))
    several = len(compiled.all_variables or compiled.variables) > 1
    texts = {match: _text_of(match, parameters) for match in searches} if several else {}

    def matching(table_key: str, match: ir.TextMatch) -> float | None:
        return covered_matches(reader, caches, catalog, table_key, match, texts.get(match))

    lists = (each.name for each in compiled.parameters if isinstance(each.type, ListType))
    lengths = {name: 1 << len(parameters[name]).bit_length() for name in lists if parameters.get(name) is not None}
    tables = tuple(
        reader.state(table_key) if texts else magnitude(reader.row_count(table_key)) for table_key in compiled.reads
    )
    key = (id(compiled), tables, tuple(texts.values()), tuple(lengths.items()))
    plan: Plan = caches.plans.get(key, lambda: plan_query(compiled, Statistics(catalog, reader, matching, lengths)))
    return plan, choose(plan, reader, catalog, caches)


def _text_of(match: ir.TextMatch, parameters: Mapping[str, Any]) -> str | None:
    """What a text predicate looks for, when that is known before the run."""
    match match.query:
        case ir.Literal(value=str(text)):
            return text
        case ir.Param(name=name):
            return parameters.get(name)
        case _:
            return None
