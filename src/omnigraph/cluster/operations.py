"""What an operator does with a cluster: one function for each command, given the folder and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.cluster.addresses import kind_of
from omnigraph.cluster.change.apply_changes import ApplyResult, apply_changes
from omnigraph.cluster.change.cluster_plan import ClusterPlan
from omnigraph.cluster.change.make_plan import make_plan
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.change.refresh_ledger import RefreshResult, find_drift
from omnigraph.cluster.change.take_in import ImportResult, take_in
from omnigraph.cluster.folder.cluster_file import storage_of
from omnigraph.cluster.folder.cluster_problems import Problem
from omnigraph.cluster.folder.read_folder import Desired, check_folder, read_folder
from omnigraph.cluster.overview import ClusterStatus, look_over
from omnigraph.cluster.state.approvals import Approval
from omnigraph.cluster.state.cluster_lock import HeldCluster, LockInfo
from omnigraph.cluster.state.cluster_store import ClusterStore, now
from omnigraph.errors import BadRequest, NotFound


def validate(folder: Path) -> tuple[Desired, tuple[Problem, ...]]:
    """Everything that can be checked without the store; all problems at once."""
    return check_folder(folder)


def plan(folder: Path) -> ClusterPlan:
    """What `apply` would do now. Writes nothing."""
    desired = read_folder(folder)
    store = ClusterStore(desired.storage)
    found = store.read()
    return make_plan(desired, found[0] if found is not None else None, store)


def apply(folder: Path, actor: str | None) -> ApplyResult:
    """Make what the folder asks for what is applied."""
    desired = read_folder(folder)
    with _changing(desired, "apply", actor) as ledger:
        return apply_changes(desired, ledger)


def approve(folder: Path, address: str, actor: str | None) -> Approval:
    """Approve what the plan has for an address, as the folder and the ledger are now."""
    kind_of(address)
    desired = read_folder(folder)
    store = ClusterStore(desired.storage)
    found = store.read()
    state = found[0] if found is not None else None
    planned = make_plan(desired, state, store)
    change = planned.change(address)
    if change is None:
        raise NotFound(f"the plan has no change of `{address}`; `omnigraph cluster plan` shows what it has")
    if change.approval is None:
        raise BadRequest(
            f"the {change.operation} of `{address}` needs no approval: only deletes of graphs and migrations that drop "
            "data do"
        )
    assert state is not None
    approval = Approval(address, change.approval.effect, planned.config_digest, state.digest, actor, now())
    store.approvals.give(approval)
    return approval


def status(folder: Path) -> ClusterStatus:
    """The ledger as it is. Reads only."""
    return look_over(ClusterStore(storage_of(folder)))


def refresh(folder: Path, actor: str | None) -> RefreshResult:
    """Look at the real graphs and payloads, and record drift."""
    desired = read_folder(folder)
    with _changing(desired, "refresh", actor) as ledger:
        if ledger.is_new and not ledger.store.sidecars.list():
            raise NotFound("there is no ledger yet: `omnigraph cluster apply` or `omnigraph cluster import` makes one")
        return find_drift(ledger)


def take_in_graphs(folder: Path, actor: str | None) -> ImportResult:
    """The first ledger, from graphs that exist; and later, graphs that it does not know."""
    desired = read_folder(folder)
    with _changing(desired, "import", actor) as ledger:
        return take_in(desired, ledger)


def force_unlock(folder: Path, id: str) -> LockInfo:
    """Take the lock away from whoever holds it under this id."""
    return ClusterStore(storage_of(folder)).lock.force_unlock(id)


@contextmanager
def _changing(desired: Desired, operation: str, actor: str | None) -> Iterator[OpenLedger]:
    """The ledger under the lock, or without one where the folder says so: compare-and-swap still guards it."""
    store = ClusterStore(desired.storage)
    if not desired.lock:
        yield OpenLedger(store, HeldCluster(), actor, desired.name)
        return
    with store.lock.held(operation, actor) as held:
        yield OpenLedger(store, held, actor, desired.name)
