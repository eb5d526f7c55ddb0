"""Make a plan: compare the folder with the ledger, and ask each graph that changes what its change would be."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.cluster.addresses import graph_address, graph_of, kind_of
from omnigraph.cluster.change.cluster_plan import Change, ClusterPlan, NeededApproval
from omnigraph.cluster.change.graph_looks import GraphLook, look_at
from omnigraph.cluster.folder.read_folder import Desired
from omnigraph.cluster.resource_values import Resource
from omnigraph.cluster.state.approvals import use_of
from omnigraph.cluster.state.cluster_state import ClusterState, Recorded
from omnigraph.cluster.state.cluster_store import ClusterStore
from omnigraph.errors import OmniGraphError
from omnigraph.ledger.store import open_store
from omnigraph.notebook import counted
from omnigraph.schema.migration.migration_steps import Step, step_text, step_to_json
from omnigraph.write.schema.schema_apply import plan_schema

HARD_DROPS = "drop data for good"
DELETE_GRAPH = "delete the graph with all its data"

_ORDER = ("provider", "graph", "schema", "query", "policy")
_ORDER_OF_DELETES = ("graph", "schema", "query", "policy", "provider")


def make_plan(desired: Desired, state: ClusterState | None, store: ClusterStore) -> ClusterPlan:
    """The plan. Nothing is written, here or in a graph."""
    known = state or ClusterState(desired.name)
    planner = _Planner(desired, known, store)
    changes = [planner.change(address) for address in planner.changed()]
    return ClusterPlan(
        name=desired.name,
        storage=store.root.uri,
        revision=known.revision,
        config_digest=desired.config_digest,
        state_digest=known.digest,
        changes=tuple(_with_consequences(changes)),
        pending_recoveries=tuple(f"{s.step} of graph {s.graph}" for s in store.sidecars.list()),
    )


class _Planner:
    def __init__(self, desired: Desired, state: ClusterState, store: ClusterStore) -> None:
        self._desired = desired
        self._state = state
        self._store = store
        self._approvals = store.approvals.list()
        self._looks: dict[str, GraphLook] = {}
        self._changing = frozenset(self.changed())

    def changed(self) -> list[str]:
        """The addresses that differ, in the order in which they are carried out; deletes come last."""
        wanted, there = self._desired.resources, self._state.resources
        found = [address for address in wanted if self._differs(wanted[address], there.get(address))]
        gone = [address for address in there if address not in wanted]
        return [
            *sorted(found, key=lambda address: (_ORDER.index(kind_of(address)), address)),
            *sorted(gone, key=lambda address: (_ORDER_OF_DELETES.index(kind_of(address)), address)),
        ]

    def change(self, address: str) -> Change:
        """What is to be done about one of them."""
        wanted, there = self._desired.resources.get(address), self._state.resources.get(address)
        before = there.digest if there else None
        if wanted is None:
            change = Change(address, "delete", "applied", before=before)
            if before is None:
                return replace(change, disposition="derived", reason="nothing of it was applied: it is forgotten")
        elif there is None or there.digest is None:
            change = Change(address, "create", "applied", after=wanted.digest)
        else:
            change = Change(address, "update", "applied", before=before, after=wanted.digest)
        kind = kind_of(address)
        if kind == "graph":
            return self._graph(change, wanted, there)
        if kind == "schema":
            return self._schema(change, wanted, there)
        waits = wanted.needs if wanted is not None else self._users_of(address)
        return self._waiting(replace(change, waits_for=waits))

    def _differs(self, wanted: Resource, there: Recorded | None) -> bool:
        return there is None or there.digest != wanted.digest or there.status != "applied"

    def _graph(self, change: Change, wanted: Resource | None, there: Recorded | None) -> Change:
        graph = change.address.split(".")[1]
        if wanted is None:
            approval = self._approval(change.address, DELETE_GRAPH, required=True)
            if approval.state == "valid":
                return replace(change, approval=approval)
            again = "the approval is stale, give it again" if approval.state == "stale" else "it needs an approval"
            reason = f"{again}: omnigraph cluster approve {change.address}"
            return replace(change, disposition="deferred", reason=reason, approval=approval)
        change = self._waiting(replace(change, waits_for=wanted.needs))
        if change.operation == "create":
            look = self._look(graph)
            if look.seen == "found":
                return _blocked(change, "the ledger does not know the graph that lies there: omnigraph cluster import")
            if look.seen != "missing":
                return _blocked(change, f"{look.reason}; look at it, and move it away if it is of no use")
            return change
        assert there is not None
        if there.has("unreadable") or there.has("half"):
            return _blocked(change, f"{there.conditions[0].message}; mend it, then omnigraph cluster refresh")
        if there.own_digest == wanted.own_digest and there.status == "applied":
            return replace(change, disposition="derived", reason="follows from its schema and queries")
        return change

    def _schema(self, change: Change, wanted: Resource | None, there: Recorded | None) -> Change:
        graph = change.address.split(".")[1]
        change = self._waiting(replace(change, waits_for=(graph_address(graph),)))
        if wanted is None or change.operation == "create":
            reason = "goes with its graph" if wanted is None else "made with its graph"
            return replace(change, disposition="derived", reason=reason)
        look = self._look(graph)
        if look.seen != "found":
            return _blocked(change, f"{look.reason}; run omnigraph cluster refresh")
        if look.schema_digest == wanted.digest:
            return replace(change, reason="the graph has this schema already")
        return self._migration(change, graph)

    def _migration(self, change: Change, graph: str) -> Change:
        approval = self._approval(change.address, HARD_DROPS, required=False)
        try:
            with open_store(self._store.graph_uri(graph), read_only=True) as opened:
                source = self._desired.schemas[graph]
                planned = plan_schema(opened, source, allow_data_loss=approval.state == "valid")
                rows = {pin.type_id: pin.row_count for pin in opened.snapshot().tables.values()}
        except OmniGraphError as error:
            return _blocked(change, error.message)
        change = replace(
            change,
            steps=tuple({**step_to_json(step), "table_rows": rows.get(str(step.type_id), 0)} for step in planned.steps),
            step_texts=tuple(_step_text(step, rows.get(str(step.type_id))) for step in planned.steps),
        )
        if not planned.supported:
            reasons = "; ".join(f"{step.reason} [{step.code}]" for step in planned.refusals)
            return _blocked(change, f"the change cannot be made in place: {reasons}")
        if not planned.drops_of_data:
            return change
        if approval.state == "valid":
            return replace(change, approval=approval, reason="drops are hard, as approved: the data goes at once")
        reason = "drops are soft: old versions keep the data; with an approval they are hard"
        return replace(change, approval=approval, reason=reason)

    def _approval(self, address: str, effect: str, *, required: bool) -> NeededApproval:
        given = [approval for approval in self._approvals if approval.address == address]
        for approval in reversed(given):
            if use_of(approval, self._desired.config_digest, self._state) == "valid":
                return NeededApproval(effect, required, "valid", approval.id)
        unused = [a for a in given if use_of(a, self._desired.config_digest, self._state) == "stale"]
        return NeededApproval(effect, required, "stale" if unused else "missing")

    def _waiting(self, change: Change) -> Change:
        """Only what changes too is waited for; of a graph, only that it is made or goes."""

        def matters(address: str) -> bool:
            there = self._state.resources.get(address)
            made = there is None or there.digest is None
            stays = kind_of(address) == "graph" and address in self._desired.resources and not made
            return address in self._changing and not stays

        return replace(change, waits_for=tuple(filter(matters, change.waits_for)))

    def _users_of(self, address: str) -> tuple[str, ...]:
        """What still uses a resource that is to go: it has to go first, or to be changed."""
        graph = graph_of(address)
        if graph is not None:
            return (graph_address(graph),) if graph_address(graph) not in self._desired.resources else ()
        if kind_of(address) != "provider":
            return ()
        name = address.split(".")[2]
        graphs = self._state.applied("graph").items()
        return tuple(user for user, found in graphs if found.binding.get("embedding_provider") == name)

    def _look(self, graph: str) -> GraphLook:
        if graph not in self._looks:
            self._looks[graph] = look_at(self._store.graph_uri(graph))
        return self._looks[graph]


def _with_consequences(changes: list[Change]) -> list[Change]:
    """What waits for something that will not be done will not be done either."""
    settled: dict[str, Change] = {}
    for change in changes:
        first = next(
            (
                settled[a]
                for a in change.waits_for
                if a in settled and settled[a].disposition in ("blocked", "deferred")
            ),
            None,
        )
        if first is not None and change.disposition in ("applied", "derived"):
            graph_goes = change.operation == "delete"
            disposition = first.disposition if graph_goes else "blocked"
            change = replace(change, disposition=disposition, reason=f"waits for {first.address}")
        settled[change.address] = change
    return list(settled.values())


def _step_text(step: Step, rows: int | None) -> str:
    return step_text(step) if rows is None else f"{step_text(step)} ({counted(rows, 'row')})"


def _blocked(change: Change, reason: str) -> Change:
    return replace(change, disposition="blocked", reason=reason)
