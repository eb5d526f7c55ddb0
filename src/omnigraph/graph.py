"""The Graph a user holds, and how to get one. Thin on purpose: what it does is in `handle`, part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.choices import Engine
from omnigraph.errors import BadRequest
from omnigraph.forked import is_here, opened_here
from omnigraph.graph_groups import BranchGroup, MaintenanceGroup, SchemaGroup
from omnigraph.handle.reads import Reads
from omnigraph.handle.undoing import Undoing
from omnigraph.handle.upkeep import Maintenance
from omnigraph.handle.versions import Versions
from omnigraph.handle.writes import Writes
from omnigraph.policy.actions import Action
from omnigraph.sources import named_in_errors, schema_source

if TYPE_CHECKING:
    from omnigraph.embed.provider_settings import EmbeddingSettings
    from omnigraph.ledger.recovery.recover import RecoveryReport
    from omnigraph.ledger.store import GraphStore
    from omnigraph.maintain.copying.copy import CopyResult
    from omnigraph.policy.bundle import Bundle
    from omnigraph.policy.decide_access import Policy


def init(uri: str | PathLike[str], *, schema: str | PathLike[str], actor: str | None = None) -> Graph:
    """Make a graph at `uri` from a schema: its text, or the path of a `.pg` file. Refuses a path that is not empty."""
    from omnigraph.ledger.store import create_store

    opened_here()
    source = schema_source(schema)
    with named_in_errors(source.filename):
        return Graph(_kept_compact(create_store(_address(uri), source.text, actor=actor)), actor=actor)


def open(  # noqa: A001 - `og.open` is how it reads
    uri: str | PathLike[str],
    *,
    read_only: bool = False,
    branch: str = "main",
    actor: str | None = None,
    combine: bool = False,
    policy: Policy | Bundle | str | PathLike[str] | None = None,
    embedding: EmbeddingSettings | None = None,
    blob_bases: Collection[str] = (),
) -> Graph:
    """Open a graph. Opening for writing finishes or undoes what a crashed writer left; read-only changes nothing.

    With `combine`, mutations of this handle that wait for each other share their commits, which list them. With a
    `policy` (the path of its file), every call of the handle is allowed by one of its rules, or refused.
    `embedding` is the provider of vectors for texts; without, the one that the environment names.
    Blobs that are given by a URI may be read from below `blob_bases`, whatever OMNIGRAPH_BLOB_URIS says.
    """
    from omnigraph.ledger.store import open_store

    opened_here()
    rules = _installed(policy)
    store = open_store(_address(uri), read_only=read_only)
    store.embedding = embedding
    store.blob_bases = tuple(blob_bases)
    try:
        store.branch(branch)
    except BaseException:
        store.close()
        raise
    return Graph(_kept_compact(store), branch=branch, actor=actor, combine=combine, policy=rules)


def _installed(policy: Policy | Bundle | str | PathLike[str] | None) -> Policy | None:
    if policy is None:
        return None
    from omnigraph.policy.decide_access import as_policy

    return as_policy(policy)


def copy(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    branches: Collection[str] = (),
    at: str | None = None,
    engine: Engine = "auto",
    actor: str | None = None,
    policy: Policy | Bundle | str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CopyResult:
    """Copy a graph with its history to an empty place, on any store, while others go on writing to it.

    With `branches`, only `main` and those; with `at`, only the branch of a commit as it was then, and `main` as that
    commit knows it. An interrupted copy is carried on by the same call. With `engine` spark the files are carried by
    tasks; auto takes a session that is active for large graphs. Under a `policy` the actor must be allowed to
    administer the graph: a copy has all of it.
    """
    from omnigraph.engines import copy_carriers
    from omnigraph.maintain.copying.copy import copy as make_copy

    opened_here()
    rules = _installed(policy)
    if rules is not None:
        rules.require(actor, Action.ADMIN)
    carriers = copy_carriers(engine)
    return make_copy(_address(source), _address(target), branches=branches, at=at, progress=progress, carriers=carriers)


def _address(uri: str | PathLike[str]) -> str:
    if not isinstance(uri, str | PathLike):
        raise BadRequest(f"a graph is named by a path or a URI, not by {type(uri).__name__}")
    return str(uri)


def _kept_compact(store: GraphStore) -> GraphStore:
    if store.read_only:
        return store
    from omnigraph.maintain.optimize.tail import attach

    attach(store)
    return store


def _opened_again(
    uri: str, read_only: bool, branch: str, actor: str | None, combine: bool, policy: Policy | None = None
) -> Graph:
    """A graph that was pickled: its address travels, and the policy that it is under."""
    return open(uri, read_only=read_only, branch=branch, actor=actor, combine=combine, policy=policy)


class Graph(Reads, Writes, Versions, Undoing, Maintenance):
    """An open graph, bound to a branch. Safe to share between threads; close it, or use it as a context manager.

    What it can do is also there in groups: `g.branches`, `g.tags`, `g.schema`, `g.maintenance`. Every method takes an
    `actor`, which wins over the handle's: writes are recorded for it, and a policy asks for it where one is installed.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        held = (self.uri, self._opened.read_only, self._branch, self._actor, self._combine, self._policy)
        return _opened_again, held

    def under(self, policy: Policy | None) -> Graph:
        """Another handle on the same opened graph, under another policy. Closing either closes both."""
        return self._on(self._branch, self._actor, policy)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        notes = [f"branch {self._branch}"]
        notes += ["read-only"] if self._opened.read_only else []
        notes += [f"as {self._actor}"] if self._actor else []
        return f"<Graph {self.uri}, {', '.join(notes)}>"

    def _repr_html_(self) -> str:
        return self.snapshot()._repr_html_()

    @property
    def branches(self) -> BranchGroup:
        """Everything about branches: `create`, `list`, `delete`, `merge`, `revert`, `restore`, `cherry_pick`, `diff`,
        `sync`."""
        return BranchGroup(self)

    @property
    def schema(self) -> SchemaGroup:
        """Everything about the schema: `source`, `catalog`, `plan`, `apply`, `diagram`."""
        return SchemaGroup(self)

    @property
    def maintenance(self) -> MaintenanceGroup:
        """What operators do: `optimize`, `ensure_indices`, `repair`, `cleanup`, `verify`, `recoveries`, `relocate`."""
        return MaintenanceGroup(self)

    def close(self) -> None:
        """Finish the upkeep of tables with many small writes and release caches. Writes are finished long before."""
        if is_here(self._process):
            self._opened.close()

    def refresh(self, *, actor: str | None = None) -> RecoveryReport:
        """See what other processes published, and finish what a crashed writer left where that is possible now."""
        from omnigraph.ledger.recovery.recover import RecoveryReport, heal

        self._allow(Action.READ, actor, branch=self._branch)
        return RecoveryReport() if self._store.read_only else heal(self._store)

    def branch_list(self, *, actor: str | None = None) -> list[str]:
        """The names of the public branches, sorted. `g.branches.list()` has who made them, when and from where."""
        return [ref.name for ref in self.branches.list(actor=actor)]
