"""OmniGraph: a typed, versioned property-graph store with Git-style branches.

    import omnigraph as og

    g = og.init("graph.omni", schema="schema.pg")
    g.load("people.jsonl", mode="merge")
    g.query("query q($n: String) { match { $p: Person { name: $n } } return { $p } }", n="Ada").rows()

Importing the package is quick: Lance, DuckDB, Arrow and Spark are loaded when they are first needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import aio, errors
    from omnigraph.client.remote_graph import RemoteGraph, connect
    from omnigraph.errors import OmniGraphError
    from omnigraph.graph import Graph, copy, init, open
    from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.diff import Diff
    from omnigraph.merge.merge import MergeResult
    from omnigraph.read.result.result import Result
    from omnigraph.schema.catalog import Catalog
    from omnigraph.write.results import LoadResult, MutationResult

    __version__: str

__all__ = [
    "BranchRef",
    "Catalog",
    "Diff",
    "EntityChange",
    "Graph",
    "GraphCommit",
    "LoadResult",
    "MergeResult",
    "MutationResult",
    "OmniGraphError",
    "RemoteGraph",
    "Result",
    "Snapshot",
    "__version__",
    "aio",
    "connect",
    "copy",
    "errors",
    "init",
    "open",
]

_HOMES = {
    "BranchRef": "ledger.values",
    "Catalog": "schema.catalog",
    "Diff": "merge.diff",
    "EntityChange": "merge.changes",
    "Graph": "graph",
    "GraphCommit": "ledger.values",
    "LoadResult": "write.results",
    "MergeResult": "merge.merge",
    "MutationResult": "write.results",
    "OmniGraphError": "errors",
    "RemoteGraph": "client.remote_graph",
    "Result": "read.result.result",
    "Snapshot": "ledger.values",
    "connect": "client.remote_graph",
    "copy": "graph",
    "init": "graph",
    "open": "graph",
}
"""Where each public name lives; it is imported when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"omnigraph.{_HOMES[name]}"), name)
    if name in ("aio", "errors"):
        return import_module(f"omnigraph.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("omnigraph")
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
