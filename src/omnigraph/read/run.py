"""The door to reading: run a compiled query on a snapshot, or explain how it would run."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyarrow as pa

from omnigraph.config import settings
from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.errors import HistoryGap
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.read.operators.execute import execute
from omnigraph.read.operators.project import project
from omnigraph.read.plan.choice import Choices, TraversalMode, choose
from omnigraph.read.plan.needs import carried_columns, shown_properties
from omnigraph.read.plan.planner import plan_query
from omnigraph.read.plan.statistics import Statistics, text_matches
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


class Limits(TypedDict, total=False):
    """What a caller may say about one run: who stops it, what it may hold and take, and what it asks outside."""

    cancel: CancelToken | None
    memory_limit: int | None
    timeout: float | None
    """In seconds."""
    provider: EmbeddingProvider | None
    now: datetime.datetime | None
    """What `now()` is."""


def run_query(
    store: GraphStore,
    snapshot: Snapshot,
    catalog: Catalog,
    compiled: ir.ReadQuery,
    params: Mapping[str, Any] | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Run a read on a snapshot. Every table it looks at is the one that the snapshot pins."""
    from omnigraph.read.tables.stored import StoredTables
    from omnigraph.storage.lance_errors import TableNotFound

    caches = caches_of(store)
    reader = StoredTables(store.tables, snapshot.tables, caches)
    try:
        return run_on(reader, catalog, caches, compiled, params, **limits)
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
    *,
    cancel: CancelToken | None = None,
    memory_limit: int | None = None,
    timeout: float | None = None,
    provider: EmbeddingProvider | None = None,
    now: datetime.datetime | None = None,
) -> Result:
    """Run a read over any tables. `timeout` is in seconds."""
    stop = StopSign(cancel, timeout)
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
        now=now or datetime.datetime.now(datetime.UTC),
        stop=stop,
        memory=MemoryBudget(memory_limit if memory_limit is not None else settings().query_memory),
        profile=profile,
        variables=plan.variables,
        text_truth=table_truth,
        in_memory=choices.in_memory,
        csr_edges=choices.csr_edges,
        carried=carried,
        shown=shown,
        provider=provider,
    )
    for edge, choice in choices.edges.items():
        if choice.mode is TraversalMode.INDEXED:
            caches.spend(reader.state(edge), choice.indexed_cost)
    with within_memory(run.memory):
        return _result(run, plan, choices, catalog)


def _result(run: Run, plan: Plan, choices: Choices, catalog: Catalog) -> Result:
    frame = execute(run, plan)
    columns = plan.query.root.columns
    schema = result_schema(plan.query.columns, catalog)

    def make_rows(start: int, stop: int) -> pa.RecordBatch:
        with within_memory(run.memory):
            rows = project(run, frame.slice(start, stop), columns, schema)
            run.memory.expect("the rows of the result", rows.nbytes)
            return rows

    result = Result(
        plan.query.columns,
        schema,
        frame.length,
        make_rows,
        lambda: explain(plan, choices, run.profile),
    )
    if frame.length <= BATCH_ROWS:
        # Small results are made at once, so that they outlive the graph they came from.
        result.to_arrow()
    return result


def _planned(
    reader: TableReader,
    catalog: Catalog,
    caches: ReadCaches,
    compiled: ir.ReadQuery,
    parameters: Mapping[str, Any],
) -> tuple[Plan, Choices]:
    """The plan, from the cache when the query and the tables are the same; the choices are made for each run.

    Where text predicates stand beside other variables, how rare their words are is part of the plan, and so is the
    order of magnitude of how many values each list among the parameters has.
    """
    states = tuple(reader.state(table_key) for table_key in compiled.reads)
    # A compiled query is known by identity; what is kept holds on to it, so the identity stays its own.
    _, searches = caches.searches.get(id(compiled), lambda: (compiled, text_matches(compiled)))
    several = len(compiled.all_variables or compiled.variables) > 1
    texts = {match: _text_of(match, parameters) for match in searches} if several else {}

    def matching(table_key: str, match: ir.TextMatch) -> float | None:
        return covered_matches(reader, caches, catalog, table_key, match, texts.get(match))

    lists = (each.name for each in compiled.parameters if isinstance(each.type, ListType))
    lengths = {name: 1 << len(parameters[name]).bit_length() for name in lists if parameters.get(name) is not None}
    key = (id(compiled), states, tuple(texts.values()), tuple(lengths.items()))
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
