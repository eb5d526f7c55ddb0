"""Values that came over the wire, as the values that a graph opened here would give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.ledger.values import (
    MAIN,
    BranchRef,
    CommitOperation,
    GraphCommit,
    Snapshot,
    StreamBatch,
    TablePin,
    WriterKind,
)
from omnigraph.merge.changes import EntityChange, Op, TypeCount
from omnigraph.merge.decide.conflicts import ConflictKind, MergeConflict
from omnigraph.merge.merge import MergeResult, Outcome
from omnigraph.merge.undo.taken_back import TakenBack
from omnigraph.merge.undo.undo_result import UndoOutcome, UndoResult
from omnigraph.query.ir import ResultColumn
from omnigraph.read.result.explain import Explanation, Line
from omnigraph.read.result.result import Result
from omnigraph.read.state.profile import Profile
from omnigraph.schema.migration.migrate import plan_from_json
from omnigraph.schema.types import EntityType, EnumType, ListType, Scalar, ScalarType, ValueType, VectorType
from omnigraph.write.embedding.embed_results import EmbeddedProperty, EmbedResult
from omnigraph.write.results import LoadResult, MutationResult, PendingIndex, TableLoad
from omnigraph.write.schema.schema_apply import SchemaApplyResult

Json = Mapping[str, Any]


def commit(found: Json) -> GraphCommit:
    """A commit."""
    operations = tuple(CommitOperation.from_json(one) for one in found.get("operations", ()))
    return GraphCommit(**{**found, "kind": WriterKind(found["kind"]), "operations": operations})


def maybe_commit(found: Json | None) -> GraphCommit | None:
    """A commit, where one was made."""
    return None if found is None else commit(found)


def branch(found: Json) -> BranchRef:
    """A branch, without what only the store knows of it."""
    name = found["name"]
    return BranchRef(
        name,
        "",
        None if name == MAIN else "",
        source_branch=found["source_branch"],
        source_commit=found["source_commit"],
        created_by=found["created_by"],
        created_at=found["created_at"] or 0,
    )


def explanation(found: Json) -> Explanation:
    """The plan of a query, with the figures of a run when it was run."""
    lines = tuple(
        Line(
            step["step"],
            step["what"],
            step["depth"],
            step["estimated_rows"],
            step["choice"],
            step["rows"],
            step["seconds"],
        )
        for step in found["steps"]
    )
    run = found["run"]
    profile = None
    if run is not None:
        profile = Profile(
            planning_seconds=run["planning_seconds"],
            total_seconds=run["seconds"],
            result_rows=run["rows"],
            peak_bytes=run["peak_bytes"],
        )
    return Explanation(found["query"], lines, profile)


def snapshot(found: Json, head: GraphCommit) -> Snapshot:
    """A state and its tables."""
    ref = BranchRef(found["branch"], head.incarnation, head.manifest_branch)
    tables = {
        table["table_key"]: TablePin(
            table["table_key"],
            "",
            table["location"],
            table["table_branch"],
            table["table_version"],
            table["row_count"],
            "",
        )
        for table in found["tables"]
    }
    return Snapshot(ref, found["manifest_version"], head, found["schema_digest"], tables)


def mutation_result(found: Json) -> MutationResult:
    """What a mutation did."""
    return MutationResult(
        found["branch"],
        found["query_name"],
        found["affected_nodes"],
        found["affected_edges"],
        maybe_commit(found["commit"]),
        found.get("actor_id"),
        {key: tuple(ids) for key, ids in found["inserted_ids"].items()},
        found.get("operation_id"),
    )


def load_result(found: Json) -> LoadResult:
    """What a load brought in."""
    return LoadResult(
        found["uri"],
        found["branch"],
        found["base_branch"],
        found["branch_created"],
        found["mode"],
        tuple(TableLoad(**table) for table in found["tables"]),
        maybe_commit(found["commit"]),
        found["engine"],
        tuple(PendingIndex(**index) for index in found["pending_indexes"]),
        batch=StreamBatch(**found["batch"]) if "batch" in found else None,
        skipped=found.get("skipped", False),
    )


def embed_result(found: Json) -> EmbedResult:
    """What was embedded."""
    return EmbedResult(
        found["uri"],
        found["branch"],
        found["mode"],
        tuple(EmbeddedProperty(**one) for one in found["properties"]),
        maybe_commit(found["commit"]),
        found["dry_run"],
        found["engine"],
    )


def schema_applied(found: Json) -> SchemaApplyResult:
    """What applying a schema did."""
    plan = plan_from_json({"steps": found["steps"], "allow_data_loss": False})
    return SchemaApplyResult(found["uri"], plan, found["schema_digest"], maybe_commit(found["commit"]))


def count(found: Json) -> TypeCount:
    """How many entities of a type differ."""
    return TypeCount(**found)


def change(found: Json) -> EntityChange:
    """One change. Its values are those of JSON: dates and times are ISO text."""
    ends = found["endpoints"]
    return EntityChange(
        found["kind"],
        found["type"],
        found["id"],
        Op(found["op"]),
        found["before"],
        found["after"],
        (ends["from"], ends["to"]) if ends else None,
    )


def conflict(found: Json) -> MergeConflict:
    """A row that cannot be merged by itself."""
    kind = ConflictKind("".join(word.capitalize() for word in found["kind"].split("_")))
    return MergeConflict(
        found["table_key"],
        found["row_id"],
        kind,
        found["message"],
        base=found.get("base"),
        source=found.get("source"),
        target=found.get("target"),
        properties=tuple(found.get("properties", ())),
    )


def merge_result(found: Json) -> MergeResult:
    """What a merge did, or would do."""
    return MergeResult(
        found["source"],
        found["target"],
        Outcome(found["outcome"]),
        maybe_commit(found["commit"]),
        tuple(count(one) for one in found["tables"]),
        tuple(conflict(one) for one in found["merge_conflicts"]),
        found["dry_run"],
        found["source_deleted"],
        found["source_kept_because"],
        found["engine"],
        reverted=tuple(TakenBack(one["graph_commit_id"], one["reverted_by"]) for one in found.get("reverted", ())),
        changes=tuple(change(one) for one in found.get("changes", ())),
    )


def undo_result(found: Json) -> UndoResult:
    """What a revert, a restore or a cherry-pick did, or would do."""
    return UndoResult(
        found["operation"],
        found["about"],
        found["branch"],
        UndoOutcome(found["outcome"]),
        maybe_commit(found["commit"]),
        tuple(count(one) for one in found["tables"]),
        tuple(conflict(one) for one in found["merge_conflicts"]),
        found["dry_run"],
        found["engine"],
        tuple(change(one) for one in found.get("changes", ())),
    )


@dataclass(frozen=True, slots=True, repr=False)
class RemoteDiff:
    """The difference between two states: iterate for the changes, `summary()` for the counts."""

    counts: tuple[TypeCount, ...]
    changes: tuple[EntityChange, ...]

    def __iter__(self) -> Iterator[EntityChange]:
        return iter(self.changes)

    def summary(self) -> tuple[TypeCount, ...]:
        """How many entities of each type differ, by operation."""
        return self.counts

    def __repr__(self) -> str:
        told = (f"{each.table_key} +{each.inserts} ~{each.updates} -{each.deletes}" for each in self.counts)
        return f"<Diff: {', '.join(told) or 'no difference'}; iterate for the changes, summary() for the counts>"


@dataclass(frozen=True, slots=True)
class RemoteCommitChanges:
    """One commit of the feed with its changes, and the cursor that goes on after it."""

    commit: GraphCommit
    changes: tuple[EntityChange, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class RemotePage:
    """A stretch of the feed, and where the next one starts."""

    blocks: tuple[RemoteCommitChanges, ...]
    cursor: str

    def __iter__(self) -> Iterator[RemoteCommitChanges]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


def block(found: Json) -> RemoteCommitChanges:
    """One commit of the feed."""
    return RemoteCommitChanges(commit(found["commit"]), _changes(found["changes"]), found["cursor"])


def page(found: Json) -> RemotePage:
    """A page of the feed."""
    return RemotePage(tuple(block(one) for one in found["blocks"]), found["cursor"])


def diff(found: Json) -> RemoteDiff:
    """A difference."""
    return RemoteDiff(tuple(count(one) for one in found["summary"]), _changes(found["changes"]))


def _changes(found: Iterable[Json]) -> tuple[EntityChange, ...]:
    return tuple(change(one) for one in found)


def result(stream: pa.RecordBatchReader) -> tuple[Result, Json]:
    """The rows of a query, and what the server says beside them."""
    head: dict[str, Any] = json.loads(stream.schema.metadata[b"omnigraph"])
    columns = [ResultColumn(c["name"], column_type(c["type"]), c["nullable"]) for c in head["columns"]]
    rest = {key: value for key, value in stream.schema.metadata.items() if key != b"omnigraph"}
    return Result.from_table(columns, stream.read_all().replace_schema_metadata(rest or None)), head


def column_type(text: str) -> ValueType:
    """The type that is written so."""
    if text in tuple(Scalar):
        return ScalarType(Scalar(text))
    if found := re.fullmatch(r"Vector\((\d+)\)", text):
        return VectorType(int(found[1]))
    if found := re.fullmatch(r"\[(\w+)\]", text):
        return ListType(Scalar(found[1]))
    if found := re.fullmatch(r"enum\((.*)\)", text):
        return EnumType(tuple(found[1].split(", ")))
    return EntityType(f"node:{text}")
