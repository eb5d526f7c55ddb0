"""How plans, outcomes and the state of a cluster are shown to people: a line for each resource, a last sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.show.output import Output
from omnigraph.notebook import counted

if TYPE_CHECKING:
    from omnigraph.cluster.change.apply_changes import ApplyResult
    from omnigraph.cluster.change.cluster_plan import Change, ClusterPlan
    from omnigraph.cluster.change.refresh_ledger import RefreshResult
    from omnigraph.cluster.change.take_in import ImportResult
    from omnigraph.cluster.folder.cluster_problems import Problem
    from omnigraph.cluster.folder.read_folder import Desired
    from omnigraph.cluster.overview import ClusterStatus

_SIGNS = {"create": "+", "update": "~", "delete": "-"}


def validation(out: Output, desired: Desired, problems: tuple[Problem, ...]) -> None:
    """What `validate` found."""
    if problems:
        for problem in problems:
            out.say(problem.text)
        out.say(f"{counted(len(problems), 'problem')}; nothing else was looked at")
        return
    kinds = ("graph", "query", "policy", "provider")
    counts = [sum(address.startswith(f"{kind}.") for address in desired.resources) for kind in kinds]
    nouns = [_counted(count, kind) for count, kind in zip(counts, kinds) if count]
    out.say(f"{desired.name} is valid: {', '.join(nouns) or 'nothing in it'}")


def plan(out: Output, planned: ClusterPlan) -> None:
    """What `apply` would do."""
    out.say(f"cluster {planned.name} at {planned.storage}, revision {planned.revision}")
    for pending in planned.pending_recoveries:
        out.say(f"! a {pending} was cut off; apply settles it first, which may change this plan")
    if not planned.changes:
        out.say("nothing to do: what is applied is what is wanted")
        return
    width = max(len(change.address) for change in planned.changes)
    for change in planned.changes:
        note = change.reason or (f"after {', '.join(change.waits_for)}" if change.waits_for else "")
        head = f"{_SIGNS[change.operation]} {change.address:<{width}}  {change.operation}  {change.disposition:<8}"
        out.say(f"{head}  {note}".rstrip())
        _details(out, change)
    out.say(_summary(planned))


def applied(out: Output, result: ApplyResult) -> None:
    """What `apply` did."""
    for told in result.recovered:
        reason = f": {told['reason']}" if told["outcome"] == "reported" else ""
        out.say(f"! {told['step']} of graph {told['graph']} was cut off; {told['outcome']}{reason}")
    width = max((len(outcome.change.address) for outcome in result.outcomes), default=0)
    for outcome in result.outcomes:
        change = outcome.change
        head = f"{_SIGNS[change.operation]} {change.address:<{width}}  {change.operation}  {outcome.outcome:<8}"
        out.say(f"{head}  {outcome.message or ''}".rstrip())
        if outcome.outcome == "applied":
            _details(out, change)
    if result.converged:
        done = "applied" if result.outcomes else "nothing to do: what is applied is what is wanted"
        out.say(f"{done}, revision {result.revision}" if result.outcomes else f"{done} (revision {result.revision})")
    else:
        left = [o for o in result.outcomes if o.outcome not in ("applied", "derived")]
        out.say(f"not converged: {counted(len(left), 'change')} left to do, revision {result.revision}")


def status(out: Output, found: ClusterStatus) -> None:
    """The ledger, the lock, payloads and what was cut off."""
    state = found.state
    if state is None:
        out.say(f"nothing was applied at {found.storage} yet")
    else:
        how = "converged" if state.converged else "not converged"
        by = f" by {state.updated_by}" if state.updated_by else ""
        out.say(f"cluster {state.name} at {found.storage}, revision {state.revision}, {how}")
        out.say(f"last written {state.updated_at}{by}")
        rows = [
            (
                address,
                found.status_of(address),
                (resource.digest or "-")[:12],
                found.payloads.get(address),
                "; ".join(condition.message for condition in resource.conditions) or None,
            )
            for address, resource in state.resources.items()
        ]
        out.table(("resource", "status", "digest", "payload", "condition"), rows, empty="no resources")
    for sidecar in found.recoveries:
        out.say(f"! {sidecar.step} of graph {sidecar.graph} is under way or was cut off, since {sidecar.started_at}")
    if found.lock is not None:
        gone = "" if found.lock.live else "; its holder is gone, the next command takes it"
        out.say(f"locked by {found.lock.text}, id {found.lock.id}{gone}")


def refreshed(out: Output, found: RefreshResult) -> None:
    """What `refresh` found."""
    for told in found.recovered:
        out.say(f"! {told['step']} of graph {told['graph']} was cut off; {told['outcome']}")
    for finding in found.findings:
        out.say(f"{finding.address}: {finding.condition}, {finding.message}")
    for graph in found.unknown_graphs:
        out.say(f"graph {graph} lies in the storage and not in the ledger; `omnigraph cluster import` takes it in")
    if found.findings:
        out.say(f"{counted(len(found.findings), 'resource')} drifted; `omnigraph cluster plan` shows what mends it")
    else:
        out.say("no drift: everything is as it was applied")


def imported(out: Output, found: ImportResult) -> None:
    """What `import` took in."""
    for graph in found.imported:
        out.say(f"took in graph {graph}")
    for graph, reason in found.refused.items():
        out.say(f"could not take in graph {graph}: {reason}")
    if found.missing:
        out.say(f"not there yet: {', '.join(found.missing)}")
    if found.undeclared:
        out.say(f"left alone, since cluster.yaml does not name them: {', '.join(found.undeclared)}")
    out.say(f"{counted(len(found.imported), 'graph')} taken in, revision {found.revision}")


def _details(out: Output, change: Change) -> None:
    for text in change.step_texts:
        out.say(f"      {text}")
    approval = change.approval
    if approval is not None and not approval.required and approval.state != "valid":
        again = " (the one that was given is stale)" if approval.state == "stale" else ""
        out.say(f"      to {approval.effect}: omnigraph cluster approve {change.address}{again}")


def _summary(planned: ClusterPlan) -> str:
    counts = planned.to_json()["counts"]
    parts = [f"{number} to {word}" for word, number in counts.items() if number]
    waiting = len(planned.to_json()["approvals_needed"])
    notes = [(waiting, "waiting for an approval"), (len(planned.blocked), "blocked")]
    return ", ".join(parts + [f"{number} {what}" for number, what in notes if number])


def _counted(count: int, kind: str) -> str:
    plural = {"query": "queries", "policy": "policies"}.get(kind, f"{kind}s")
    return f"{count} {kind if count == 1 else plural}"
