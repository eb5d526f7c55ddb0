"""Addresses: the one name that each resource of a cluster has, in plans, approvals, the ledger and messages."""

from __future__ import annotations

import re

from omnigraph.errors import BadRequest

GRAPH_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
"""What a graph may be called: it is part of a path and of a URL."""

WHOLE_CLUSTER = "cluster"
"""What a policy applies to that is about the server itself. No graph may have this name."""

_PARTS = {"graph": 2, "schema": 2, "query": 3, "policy": 2, "provider": 3}


def graph_address(graph: str) -> str:
    """`graph.<id>`."""
    return f"graph.{graph}"


def schema_address(graph: str) -> str:
    """`schema.<id>`: the schema of that graph."""
    return f"schema.{graph}"


def query_address(graph: str, name: str) -> str:
    """`query.<graph>.<name>`."""
    return f"query.{graph}.{name}"


def policy_address(name: str) -> str:
    """`policy.<name>`."""
    return f"policy.{name}"


def provider_address(name: str) -> str:
    """`provider.embedding.<name>`."""
    return f"provider.embedding.{name}"


def kind_of(address: str) -> str:
    """`graph`, `schema`, `query`, `policy` or `provider`; `BadRequest` for what is no address."""
    kind, *rest = address.split(".")
    if _PARTS.get(kind) != len(rest) + 1 or not all(rest) or (kind == "provider" and rest[0] != "embedding"):
        raise BadRequest(
            f"`{address}` is no address of a resource: write graph.ID, schema.ID, query.GRAPH.NAME, policy.NAME or "
            "provider.embedding.NAME"
        )
    return kind


def graph_of(address: str) -> str | None:
    """The graph that a resource is part of; None for policies and providers."""
    return address.split(".")[1] if kind_of(address) in ("graph", "schema", "query") else None
