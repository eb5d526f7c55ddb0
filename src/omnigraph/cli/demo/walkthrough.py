"""`omnigraph demo`: a sample graph from nothing, each step shown with the time it took."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omnigraph.choices import Engine
from omnigraph.cli.demo.sample import query_source, schema_source, write_sample
from omnigraph.cli.show.output import console


def walk_through(path: Path | None, *, engine: Engine, people: int) -> None:
    """Make the sample graph at `path` (or in a temporary place that is removed) and walk through it."""
    if path is not None:
        _walk(path, engine, people)
        return
    with tempfile.TemporaryDirectory(prefix="omnigraph-demo-") as directory:
        _walk(Path(directory) / "sample.omni", engine, people)


def _walk(path: Path, engine: Engine, people: int) -> None:
    import omnigraph as og

    out = console()
    queries = query_source()
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "sample.jsonl"
        records = write_sample(data, people)
        size = data.stat().st_size / 1e6
        out.print(
            f"\n[bold]OmniGraph[/bold]: a sample graph of {people:,} people, {records:,} records, {size:.1f} MB\n"
        )
        with _step(out, f"init {path.name} from a schema of 4 types"):
            graph = og.init(path, schema=schema_source(), actor="demo")
        with graph:
            if engine == "spark":
                with _step(out, "start a Spark session on this machine"):
                    _start_spark()
            with _step(out, f"load {records:,} records on the {engine} engine, every check on, as one commit"):
                loaded = graph.load(str(data), mode="append", engine=engine)
            _tell(out, ", ".join(f"{t.table_key} {t.rows_loaded:,}" for t in loaded.tables))
            with _step(out, "build the declared indexes"):
                graph.ensure_indices()
            with _step(out, "query: friends of friends of p1, over 60"):
                found = graph.query(queries, "friends", slug="p1", age=60)
            _show(out, found)
            with _step(out, "query: the largest employers"):
                found = graph.query(queries, "employers")
            _show(out, found)
            with _step(out, "query: full-text search among people who know nobody"):
                found = graph.query(queries, "loners", word="graphs")
            _show(out, found)
            _branch_review_merge(out, graph, queries)
    out.print("\n[green]done[/green]: try it on your own data with `omnigraph init --schema S URI`\n")


def _branch_review_merge(out: Any, graph: Any, queries: str) -> None:
    with _step(out, "branch review/1 from main"):
        graph.branch_create("review/1")
    with _step(out, "on review/1: retire p1 and hire p50"):
        graph.mutate(queries, "retire", slug="p1", branch="review/1")
        graph.mutate(queries, "hire", slug="p50", company="acme", day="2026-01-02", branch="review/1")
    with _step(out, "review: diff main and review/1"):
        changes = list(graph.diff("main", "review/1"))
    for change in changes:
        _tell(out, f"{change.op} {change.kind} {change.type} {change.id}")
    with _step(out, "merge review/1 into main"):
        merged = graph.merge("review/1", into="main", delete_source=True)
    _tell(out, f"{merged.outcome}, commit {merged.commit.graph_commit_id}")
    with _step(out, "time travel: p1 before and after"):
        head = graph.head()
        before = graph.entity("Person", "p1", at=head.parent_commit_id)
        after = graph.entity("Person", "p1")
    _tell(out, f"was {before['status']}, is {after['status']}")


def _start_spark() -> None:
    from omnigraph.spark.session.session import spark_session

    spark_session()


@contextmanager
def _step(out: Any, what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    spent = time.perf_counter() - start
    out.print(f"[cyan]{spent * 1000:8.0f} ms[/cyan]  {what}", highlight=False)


def _tell(out: Any, text: str) -> None:
    out.print(f"             {text}", style="dim", markup=False, highlight=False)


def _show(out: Any, result: Any) -> None:
    for line in result.to_text(width=100).splitlines():
        out.print(f"             {line}", markup=False, highlight=False)
