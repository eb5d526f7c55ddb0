"""Carry a plan out, in order: graphs are made, schemas applied, queries and policies published, approved deletes last.

What moves something outside the ledger has a sidecar before it and a ledger write after it. What fails blocks what
waits for it; the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph.cluster.addresses import graph_of, kind_of, schema_address
from omnigraph.cluster.change.cluster_plan import Change, ClusterPlan
from omnigraph.cluster.change.make_plan import make_plan
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.change.resume import settle, settle_all
from omnigraph.cluster.folder.read_folder import Desired
from omnigraph.cluster.state.cluster_sidecars import ClusterSidecar, Step
from omnigraph.cluster.state.cluster_state import ClusterState, Recorded
from omnigraph.cluster.state.cluster_store import now
from omnigraph.errors import LeaseLost, OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.graph import init
from omnigraph.ledger.store import open_store
from omnigraph.maintain.remove_graph import remove_graph
from omnigraph.write.schema.schema_apply import apply_schema

declare("cluster.planned", "The plan is made under the lock; nothing has moved")
declare("cluster.sidecar_put", "The sidecar of a step is written; the step has not begun")
declare("cluster.moved", "A graph is made, changed or removed; the ledger does not say so")
declare("cluster.payloads", "Payloads of queries and policies are written; the ledger does not name them")
declare("cluster.published", "Queries and policies are published; deletes have not begun")


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change: its disposition, or `failed` with the reason."""

    change: Change
    outcome: str
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**self.change.to_json(), "outcome": self.outcome, "message": self.message}


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What an apply did. `converged`: what is applied is what is wanted."""

    plan: ClusterPlan
    outcomes: tuple[ChangeOutcome, ...]
    recovered: tuple[Mapping[str, Any], ...]
    converged: bool
    changed: bool
    revision: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "cluster": self.plan.name,
            "storage": self.plan.storage,
            "converged": self.converged,
            "changed": self.changed,
            "revision": self.revision,
            "config_digest": self.plan.config_digest,
            "changes": [outcome.to_json() for outcome in self.outcomes],
            "recovered": list(self.recovered),
        }


def apply_changes(desired: Desired, ledger: OpenLedger) -> ApplyResult:
    """Make what is wanted what is applied, as far as it goes."""
    before = ledger.state.revision
    recovered = settle_all(ledger)
    plan = make_plan(desired, None if ledger.is_new else ledger.state, ledger.store)
    failpoint("cluster.planned")
    run = _Run(desired, ledger, plan)
    run.make_graphs()
    run.apply_schemas()
    run.publish()
    run.delete_graphs()
    converged = run.finish()
    return ApplyResult(
        plan,
        tuple(run.outcomes[change.address] for change in plan.changes),
        tuple(recovered),
        converged,
        ledger.state.revision != before,
        ledger.state.revision,
    )


class _Run:
    """One apply under way."""

    def __init__(self, desired: Desired, ledger: OpenLedger, plan: ClusterPlan) -> None:
        self._desired = desired
        self._ledger = ledger
        self._plan = plan
        self.outcomes: dict[str, ChangeOutcome] = {}
        for change in plan.changes:
            if change.disposition in ("deferred", "blocked"):
                self._settle(change, change.disposition, change.reason)

    def make_graphs(self) -> None:
        """Make the graphs that are new, each with its schema."""
        for change in self._todo("graph", "create"):
            graph = change.address.split(".")[1]
            resource = self._desired.resources[change.address]
            details = {"binding": dict(resource.binding), "own_digest": resource.own_digest}
            self._step(change, "create_graph", graph, details, partial(self._make, graph))
            made = self._plan.change(schema_address(graph))
            if made is not None and made.disposition == "derived":
                self._settle(made, *_like(self.outcomes[change.address], "derived"))

    def apply_schemas(self) -> None:
        """Migrate the graphs whose schema changes."""
        for change in self._todo("schema", "update"):
            graph = change.address.split(".")[1]
            digest = self._desired.resources[change.address].digest
            hard = change.approval is not None and change.approval.state == "valid"
            details = {"digest": digest, "approval": change.approval.id if hard and change.approval else None}
            self._step(change, "apply_schema", graph, details, partial(self._migrate, graph, hard))

    def publish(self) -> None:
        """Queries, policies, providers and settings of graphs: payloads first, then one write that names them all."""
        wanted = self._desired.resources
        state = self._ledger.state
        for change in self._plan.changes:
            if change.address in self.outcomes or self._is_waiting(change):
                continue
            kind = kind_of(change.address)
            if change.operation == "delete":
                if change.before is None or (kind in ("query", "policy") and not change.waits_for):
                    state = state.with_resource(change.address, None)
                    self._settle(change, change.disposition)
                continue
            resource = wanted[change.address]
            try:
                if resource.payload is not None:
                    self._ledger.store.put_payload(resource.payload)
            except OmniGraphError as error:
                self._settle(change, "failed", error.message)
                continue
            if kind == "graph":
                seen = state.observations.get(change.address, {})
                graph_id = seen.get("graph_id") or state.resources[change.address].binding.get("graph_id")
                state = state.with_resource(change.address, self._ledger.applied(resource, graph_id=graph_id))
            else:
                state = state.with_resource(change.address, self._ledger.applied(resource))
            self._settle(change, change.disposition, change.reason)
        failpoint("cluster.payloads")
        last = not any(c.operation == "delete" and c.address not in self.outcomes for c in self._plan.changes)
        self._ledger.publish(self._finished(state) if last else state)
        failpoint("cluster.published")

    def delete_graphs(self) -> None:
        """Delete the graphs whose deletion is approved, with what is theirs; then providers that nobody uses now."""
        for change in self._todo("graph", "delete"):
            graph = change.address.split(".")[1]
            assert change.approval is not None
            details = {"approval": change.approval.id}
            root = self._ledger.store.graph_root(graph)
            self._step(change, "delete_graph", graph, details, partial(remove_graph, root))
            for part in self._plan.changes:
                if part.operation == "delete" and part.address not in self.outcomes and graph_of(part.address) == graph:
                    self._settle(part, *_like(self.outcomes[change.address], "derived"))
        for change in self._todo("provider", "delete"):
            self._ledger.publish(self._ledger.state.with_resource(change.address, None))
            self._settle(change, "applied")

    def finish(self) -> bool:
        """Record what could not be done, and whether all that is wanted is applied."""
        self._ledger.publish(self._finished(self._ledger.state))
        self._ledger.store.sweep_payloads(self._ledger.state)
        return self._ledger.state.converged

    def _finished(self, state: ClusterState) -> ClusterState:
        converged = all(outcome.outcome in ("applied", "derived") for outcome in self.outcomes.values())
        for address, outcome in self.outcomes.items():
            told = outcome.message or outcome.outcome
            known = address in state.resources
            if outcome.outcome == "deferred" and known:
                state = state.with_resource(address, self._ledger.marked(address, "planned", [("deferred", told)]))
            elif outcome.outcome in ("blocked", "failed") and (known or outcome.change.operation == "create"):
                state = state.with_resource(address, self._not_done(outcome, state.resources.get(address), told))
        config = self._desired.config_digest if converged else state.config_digest
        return replace(state, name=self._desired.name, config_digest=config, converged=converged)

    def _not_done(self, outcome: ChangeOutcome, there: Recorded | None, told: str) -> Recorded:
        """A resource that could not be changed: its own failure, or that of what it waits for."""
        kept = [(c.type, c.message) for c in there.conditions if c.type in _SEEN] if there is not None else []
        if outcome.outcome == "failed":
            return self._ledger.marked(outcome.change.address, "error", [*kept, ("failed", told)])
        if told.startswith("waits for "):
            return self._ledger.marked(outcome.change.address, "pending", [*kept, ("waiting", told)])
        status = there.status if kept and there is not None else "blocked"
        return self._ledger.marked(outcome.change.address, status, kept or [("blocked", told)])

    def _make(self, graph: str) -> None:
        source = self._desired.schemas[graph]
        text = source if "\n" in source else f"{source}\n"
        init(self._ledger.store.graph_uri(graph), schema=text, actor=self._ledger.actor).close()

    def _migrate(self, graph: str, hard: bool) -> None:
        with open_store(self._ledger.store.graph_uri(graph)) as opened:
            source = self._desired.schemas[graph]
            apply_schema(opened, source, allow_data_loss=hard, actor=self._ledger.actor)

    def _step(
        self, change: Change, step: Step, graph: str, details: Mapping[str, Any], move: Callable[[], None]
    ) -> None:
        """One move outside the ledger, covered by a sidecar. What is seen afterwards decides what is recorded."""
        ledger = self._ledger
        ledger.held.check()
        sidecar = ClusterSidecar(step, graph, ledger.actor, now(), self._desired.config_digest, details)
        ledger.store.sidecars.put(sidecar)
        failpoint("cluster.sidecar_put")
        failure: OmniGraphError | None = None
        try:
            move()
        except LeaseLost:
            raise
        except OmniGraphError as error:
            failure = error
        failpoint("cluster.moved")
        told = settle(ledger, sidecar)
        if told["outcome"] == "recorded":
            self._settle(change, "applied", change.reason)
        else:
            self._settle(change, "failed", failure.message if failure is not None else str(told["reason"]))

    def _todo(self, kind: str, operation: str) -> list[Change]:
        """The changes of a kind that are to be carried out and wait for nothing that failed."""
        found = []
        for change in self._plan.changes:
            if kind_of(change.address) != kind or change.operation != operation or change.address in self.outcomes:
                continue
            if change.disposition == "applied" and change.before != change.after and not self._is_waiting(change):
                found.append(change)
        return found

    def _is_waiting(self, change: Change) -> bool:
        """Whether something that it waits for was not done; then it is settled so."""
        for address in change.waits_for:
            first = self.outcomes.get(address)
            if first is not None and first.outcome not in ("applied", "derived"):
                self._settle(change, "blocked", f"waits for {address}")
                return True
        return False

    def _settle(self, change: Change, outcome: str, message: str | None = None) -> None:
        self.outcomes[change.address] = ChangeOutcome(change, outcome, message)


_SEEN = ("unreadable", "half", "missing", "changed")


def _like(outcome: ChangeOutcome, done: str) -> tuple[str, str | None]:
    """What becomes of a part whose whole was done, or not."""
    if outcome.outcome == "applied":
        return done, None
    return "blocked", f"waits for {outcome.change.address}"
