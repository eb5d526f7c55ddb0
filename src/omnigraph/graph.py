"""The Graph a user holds. Thin on purpose: each method finds the right room and hands over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot
    from omnigraph.query.ir import CompiledQuery
    from omnigraph.read.result import Result
    from omnigraph.schema.catalog import Catalog
    from omnigraph.write.load import LoadResult
    from omnigraph.write.mutate import MutationResult

Target = str | int | None


def init(uri: str | Path, *, schema: str | Path, actor: str | None = None) -> Graph:
    """Make a graph at `uri` from a schema: its text, or the path of a `.pg` file. Refuses a path that holds one."""
    from omnigraph.ledger.store import create_store

    return Graph(create_store(str(uri), _schema_text(schema), actor=actor), actor=actor)


def open(uri: str | Path, *, read_only: bool = False, branch: str = "main", actor: str | None = None) -> Graph:
    """Open a graph. Opening for writing finishes or undoes what a crashed writer left; read-only changes nothing."""
    from omnigraph.ledger.store import open_store

    store = open_store(str(uri), read_only=read_only)
    try:
        store.branch(branch)
    except BaseException:
        store.close()
        raise
    return Graph(store, branch=branch, actor=actor)


class Graph:
    """An open graph, bound to a branch. Safe to share between threads; close it, or use it as a context manager."""

    def __init__(self, store: GraphStore, *, branch: str = "main", actor: str | None = None) -> None:
        self._store = store
        self._branch = branch
        self._actor = actor

    # --- the handle ------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return self._store.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Graph({self.uri!r}, branch={self._branch!r})"

    def close(self) -> None:
        """Release caches and leases."""
        self._store.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    def snapshot(self, at: Target = None, *, branch: str | None = None) -> Snapshot:
        """The tables and versions that a branch, commit, tag or manifest version publishes."""
        return self._store.snapshot(at, branch=branch or self._branch)

    def catalog(self, at: Target = None) -> Catalog:
        """The compiled schema of a snapshot."""
        return self._store.catalog(self.snapshot(at).schema_digest)

    def schema_source(self, at: Target = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        return self._store.schemas.get(self.snapshot(at).schema_digest)[0]

    def entity(self, type: str, id: str, at: Target = None, *, branch: str | None = None) -> dict[str, Any] | None:
        """One node or edge by its id, or None."""
        from omnigraph.ledger.snapshots import entity

        return entity(self._store, type, id, at, branch=branch or self._branch)

    # --- history and branches --------------------------------------------------------------------------------------

    def head(self, branch: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self._store.snapshot(branch=branch or self._branch).head

    def commit(self, id: str) -> GraphCommit:
        """One commit by its id."""
        return self._store.commits.get(id)

    def branches(self) -> list[BranchRef]:
        """The public branches, sorted by name."""
        from omnigraph.ledger.branches import list_branches

        return list_branches(self._store)

    def branch_list(self) -> list[str]:
        """The names of the public branches, sorted."""
        return [ref.name for ref in self.branches()]
