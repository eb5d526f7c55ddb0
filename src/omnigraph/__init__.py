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
    from omnigraph.graph import Graph, init, open

__all__ = ["Graph", "errors", "init", "open"]

_HOMES = {"Graph": "omnigraph.graph", "init": "omnigraph.graph", "open": "omnigraph.graph"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "errors":
        return import_module("omnigraph.errors")
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
