"""Schema apply: the steps of a migration plan and the data they touch, published in one step.

One apply at a time in the whole graph: it holds the schema-apply lock, which also keeps new branches from being made.
So the ids that it gives out are nobody else's, on whichever branch it works; the others keep their schema until they
are merged. The new schema is stored under its digest before anything moves, and the digest is published together with
the tables, so a snapshot and its schema can never disagree. No index is built.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from ulid import ULID

from omnigraph.errors import BadRequest
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.names import refuse_system_name
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.layout import physical_schema, table_location
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import MAIN, GraphCommit, Snapshot, TablePin, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.migration.migrate import MigrationPlan, plan
from omnigraph.schema.migration.migration_steps import AddType, DropType, RenameType, Step
from omnigraph.write.schema.hard_drops import hard_dropped, refuse_shared, refuse_tagged, remove_hard_dropped
from omnigraph.write.schema.schema_checks import check_constraints
from omnigraph.write.schema.schema_facts import data_facts
from omnigraph.write.schema.schema_tables import column_changes, stage_columns

declare("schema_apply.locked", "The schema-apply lock is held; nothing is stored")
declare("schema_apply.stored", "The new schema object is stored; no table is staged")
declare("schema_apply.staged", "The tables are made or staged; the commit window is not entered")
declare("schema_apply.before_removal", "The schema is published; versions of hard drops are not removed")


class MigrationRefused(BadRequest):
    """The plan has steps that cannot be carried out. `details` has the plan and the codes."""


@dataclass(frozen=True, slots=True)
class SchemaApplyResult:
    """What an apply did. `commit` is None when the schema was accepted already."""

    uri: str
    plan: MigrationPlan
    schema_digest: str
    commit: GraphCommit | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        planned = self.plan.to_json()
        return {
            "uri": self.uri,
            "supported": True,
            "applied": self.commit is not None,
            "step_count": len(self.plan.steps),
            "steps": planned["steps"],
            "schema_digest": self.schema_digest,
            "manifest_version": self.commit.manifest_version if self.commit else None,
            "commit": self.commit.to_json() if self.commit else None,
        }


def plan_schema(store: GraphStore, source: str, *, branch: str = MAIN, allow_data_loss: bool = False) -> MigrationPlan:
    """The steps from the accepted schema of a branch to another one, with the facts of its data. Changes nothing."""
    base = store.snapshot(branch=store.branch(branch, "schema plan").name)
    return _planned(store, base, source, allow_data_loss)[1]


def apply_schema(
    store: GraphStore,
    source: str,
    *,
    branch: str = MAIN,
    allow_data_loss: bool = False,
    actor: str | None = None,
) -> SchemaApplyResult:
    """Make `source` the schema of a branch, in one commit with the tables that change."""
    store.refuse_if_read_only("schema apply")
    refuse_system_name(branch, "schema apply")
    compile_schema(source)
    with hold_schema_lock(store, str(ULID())):
        failpoint("schema_apply.locked")
        outcome: list[SchemaApplyResult] = []

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent | None:
            desired, planned = _planned(store, base, source, allow_data_loss)
            _refuse_unsupported(planned)
            digest = store.schemas.put(source, desired)
            outcome[:] = [SchemaApplyResult(store.uri, planned, digest, None)]
            if digest == base.schema_digest:
                return None
            refuse_tagged(store, base, planned)
            refuse_shared(store, base, planned)
            failpoint("schema_apply.stored")
            intent = _intent(store, base, session, desired, planned, digest)
            failpoint("schema_apply.staged")
            return intent

        commit = run_write(
            store,
            branch,
            prepare,
            actor=actor,
            retry=RetryPolicy.SURFACE,
            operation="schema apply",
            holds_schema_lock=True,
        )
        failpoint("schema_apply.before_removal")
        if commit is not None:
            remove_hard_dropped(store, hard_dropped(outcome[0].plan), commit)
    return replace(outcome[0], commit=commit)


def _planned(store: GraphStore, base: Snapshot, source: str, allow_data_loss: bool) -> tuple[Catalog, MigrationPlan]:
    accepted = store.catalog(base.schema_digest)
    desired = compile_schema(source, previous=accepted, unused_id=store.schemas.unused_id())
    facts = data_facts(store, base, accepted, desired)
    return desired, plan(accepted, desired, facts=facts, allow_data_loss=allow_data_loss)


def _refuse_unsupported(planned: MigrationPlan) -> None:
    if planned.supported:
        return
    reasons = "; ".join(f"{step.reason} [{step.code}]" for step in planned.refusals)
    raise MigrationRefused(
        f"schema apply: the change cannot be made in place, nothing was changed: {reasons}. Look at `omnigraph schema "
        "plan`, and add a default, a new property or a new type instead.",
        codes=[step.code for step in planned.refusals],
        plan=planned.to_json(),
    )


def _intent(
    store: GraphStore, base: Snapshot, session: WriteSession, desired: Catalog, planned: MigrationPlan, digest: str
) -> WriteIntent:
    accepted = store.catalog(base.schema_digest)
    check_constraints(store, base, accepted, desired, planned)
    before = {type_.id: type_ for type_ in accepted.types()}
    steps: dict[str | None, list[Step]] = defaultdict(list)
    for step in planned.steps:
        steps[step.type_id].append(step)
    writes: list[TableWrite] = []
    for type_ in desired.types():
        old = before.get(type_.id)
        if old is not None:
            writes += _table_write(store, base, session, old, type_, steps[type_.id])
    intent = session.intent(WriterKind.SCHEMA_APPLY, base, writes, reads=frozenset(base.tables))
    return replace(
        intent,
        registered=tuple(
            _new_table(store, session, desired, step) for step in planned.steps if isinstance(step, AddType)
        ),
        renamed=tuple((s.old_table_key, s.table_key) for s in planned.steps if isinstance(s, RenameType)),
        tombstones=tuple(step.table_key for step in planned.steps if isinstance(step, DropType)),
        schema_digest=digest,
    )


def _table_write(
    store: GraphStore, base: Snapshot, session: WriteSession, old: GraphType, new: GraphType, steps: list[Step]
) -> list[TableWrite]:
    changes = column_changes(steps, old, new)
    if not changes:
        return []
    pin = base.pin(old.table_key)
    staged = session.keep(stage_columns(store, session.line(pin), new, changes, pin.row_count))
    return [
        TableWrite(
            table_key=new.table_key,
            type_id=pin.type_id,
            location=pin.location,
            pin=pin,
            line=staged.base,
            row_count=pin.row_count,
            commits=(staged,),
        )
    ]


def _new_table(store: GraphStore, session: WriteSession, desired: Catalog, step: AddType) -> TablePin:
    """Make the table of a new type. What a crashed apply left under the same id is passed over, never reused."""
    type_ = desired.table(step.table_key)
    assert type_ is not None
    location = table_location(type_)
    if store.tables.exists(location):
        location = f"{location}-{session.operation_id.lower()}"
    made = store.tables.create(location, physical_schema(type_))
    owner = session.branch.incarnation
    return TablePin(type_.table_key, type_.id, location, None, made.version, 0, owner)
