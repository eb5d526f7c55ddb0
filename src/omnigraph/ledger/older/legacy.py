"""Graphs of internal schema versions 1 to 3, read as they are.

There `__manifest` holds the whole history of `table_version` rows instead of one current row per table, there is no
`graph_head`, Lance branches of the manifest stand for graph branches under their public names, and the only schema is
`_schema.pg`. A read-only open reads this; an open for writing turns it into today's form (`migrations`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ulid import ULID

from omnigraph.errors import InternalError
from omnigraph.ledger.branches.refs import Refs, StoredRef
from omnigraph.ledger.history.commit_log import CommitLog
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.manifest.manifest import Manifest, ManifestState
from omnigraph.ledger.manifest.manifest_rows import MANIFEST, TABLE_TOMBSTONE, TABLE_VERSION, Row
from omnigraph.ledger.manifest.pins import Pins
from omnigraph.ledger.manifest.stamp import read_stamp
from omnigraph.ledger.older.old_log import COLUMNS, read_log
from omnigraph.ledger.older.old_schemas import OldSchema, part_of, read_schema
from omnigraph.ledger.schema_store import CURRENT_SOURCE, SchemaStore
from omnigraph.ledger.values import MAIN, SCHEMA_APPLY_LOCK, BranchRef, GraphCommit, TablePin, WriterKind
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.objects import ObjectStore, Token
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import ForkInfo, TableVersion

RUN_PREFIX = "__run__"
"""Lance branches of the manifest that belonged to runs."""

RUNS_GONE = 3
"""The internal schema version since which there are none."""


class LegacyGraph:
    """What is needed to read the lines of an old graph: its schema, its branches and its commit log."""

    def __init__(self, objects: ObjectStore, tables: TableStore, schemas: SchemaStore) -> None:
        self._tables = tables
        self._schemas = schemas
        self.refs = Refs(objects)
        self.schema = read_schema(objects, schemas)
        self.schemas = {self.schema.digest: self.schema}
        self.lines = {fork.name: fork for fork in branch_lines(tables)}
        self._branches: dict[str | None, BranchRef] = {}
        self._columns: dict[TableVersion, frozenset[str]] = {}
        self._log = read_log(tables)

    def branches(self) -> list[BranchRef]:
        """The graph branches that the lines of the manifest stand for, `main` first, the others by name."""
        return [self.branch(None), *(self.branch(name) for name in sorted(self.lines))]

    def named(self, name: str) -> BranchRef | None:
        """The branch of that name."""
        return self.branch(None if name == MAIN else name) if name == MAIN or name in self.lines else None

    def branch(self, line: str | None) -> BranchRef:
        """The branch of a line: as its ref object says, if a migration has made one already."""
        if line not in self._branches:
            self._branches[line] = self.refs.get(line or MAIN) or self._branch(line)
        return self._branches[line]

    def _branch(self, line: str | None) -> BranchRef:
        fork = self.lines.get(line) if line is not None else None
        if line is None or fork is None:
            return BranchRef(line or MAIN, _mint("branch", line or MAIN, self.schema.digest), line)
        source = self.branch(fork.parent_branch if fork.parent_branch in self.lines else None)
        return BranchRef(
            name=line,
            incarnation=_mint("branch", line, fork.created.isoformat()),
            manifest_branch=line,
            source_branch=source.name,
            source_incarnation=source.incarnation,
            source_commit=self.head_id(fork.parent_branch, fork.parent_version),
            source_manifest_version=fork.parent_version,
            created_at=int(fork.created.timestamp() * 1_000_000),
        )

    def read(self, table: TableVersion, rows: Sequence[Row], stamp: int) -> ManifestState:
        """The state that a line of an old manifest describes."""
        newest: dict[str, Row] = {}
        locations: dict[str, str] = {}
        for row in rows:
            if row["location"]:
                locations[row["table_key"]] = row["location"]
            # Rows are only ever added, so the last one of a table is the one last published on this branch.
            # Version numbers of different Lance branches mean nothing to each other and are never compared.
            if row["object_type"] in (TABLE_VERSION, TABLE_TOMBSTONE):
                newest[row["table_key"]] = row
        live = {key: row for key, row in sorted(newest.items()) if row["object_type"] == TABLE_VERSION}
        pins = {key: self._pin(row, locations.get(key)) for key, row in live.items() if self._declares(key, table)}
        commit = replace(self.head(table.branch, table.version), schema_digest=self._schema_of(pins).digest)
        return ManifestState(table, stamp, commit, pins, tuple(rows))

    def state(self, table: TableVersion) -> ManifestState:
        """The state at a version of an old line."""
        return self.read(table, tuple(self._tables.scan_table(table).to_pylist()), 3)

    def _declares(self, key: str, table: TableVersion) -> bool:
        """Whether the schema that was kept has the type of a table. One that was dropped since can be read no more."""
        if self.schema.catalog.table(key) is not None:
            return True
        if table.version == self._tables.head(MANIFEST, table.branch).version:
            raise InternalError(
                f"the manifest of this old graph publishes {key}, and `{CURRENT_SOURCE}` does not declare it: restore "
                f"`{CURRENT_SOURCE}` from a copy"
            )
        return False

    def _schema_of(self, pins: Mapping[str, TablePin]) -> OldSchema:
        """The schema of a state: what its tables have of the newest one."""
        found = part_of(self.schema, {key: self._columns_of(pin) for key, pin in pins.items()}, self._schemas)
        return self.schemas.setdefault(found.digest, found)

    def _columns_of(self, pin: TablePin) -> frozenset[str]:
        table = TableVersion(pin.location, pin.lance_branch, pin.version)
        if table not in self._columns:
            try:
                self._columns[table] = frozenset(self._tables.schema(table).names)
            except TableNotFound:
                # Cleaned up: the state cannot be read, whatever its schema.
                graph_type = self.schema.catalog.table(pin.table_key)
                self._columns[table] = frozenset(graph_type.by_column if graph_type is not None else ())
        return self._columns[table]

    def head(self, line: str | None, version: int) -> GraphCommit:
        """The commit that an old line stands at: from its log, or made up, always the same, when there is none."""
        found = self._logged(line, version)
        if found is not None:
            return self.commit(found)
        return self.commit(
            {
                "graph_commit_id": _mint("commit", line or MAIN, str(version), self.schema.digest),
                "manifest_branch": line,
                "manifest_version": version,
                "parent_commit_id": None,
                "merged_parent_commit_id": None,
                "actor_id": None,
                "created_at": self._committed_at(line, version),
            }
        )

    def head_id(self, line: str | None, version: int) -> str:
        """The id of that commit."""
        return self.head(line, version).graph_commit_id

    def commits(self) -> list[GraphCommit]:
        """Every commit that the log of the old graph has."""
        return [self.commit(row) for row in self._log]

    def unknown_parents(self) -> set[str]:
        """Commits that others name as parents and that went with a deleted branch."""
        known = {row["graph_commit_id"] for row in self._log}
        named = {row[column] for row in self._log for column in ("parent_commit_id", "merged_parent_commit_id")}
        return {one for one in named - known if one is not None}

    def commit(self, row: Row) -> GraphCommit:
        """A commit as an old log has it, with what old graphs did not record filled in."""
        line = row["manifest_branch"]
        known = self.branch(line)
        return GraphCommit(
            **{name: row[name] for name in COLUMNS},
            kind=WriterKind(row.get("kind") or WriterKind.MUTATION),
            changes_data=True,
            branch=known.name,
            incarnation=known.incarnation,
            schema_digest=self.schema.digest,
        )

    def _logged(self, line: str | None, version: int) -> Row | None:
        while True:
            own = [row for row in self._log if row["manifest_branch"] == line and row["manifest_version"] <= version]
            if own:
                return max(own, key=lambda row: int(row["manifest_version"]))
            fork = self.lines.get(line) if line is not None else None
            if fork is None:
                return None
            line, version = fork.parent_branch, min(version, fork.parent_version)

    def _pin(self, row: Row, location: str | None) -> TablePin:
        key, line = row["table_key"], row["table_branch"]
        graph_type = self.schema.catalog.table(key)
        if graph_type is None or not location:
            raise InternalError(f"the manifest of this old graph publishes {key} and says nowhere where it is")
        owner = self.branch(line).incarnation
        return TablePin(key, graph_type.id, location, line, row["table_version"], row["row_count"] or 0, owner)

    def _committed_at(self, line: str | None, version: int) -> int:
        for info in self._tables.versions(MANIFEST, line):
            if info.version == version:
                return int(info.timestamp.timestamp() * 1_000_000)
        return 0


def branch_lines(tables: TableStore) -> list[ForkInfo]:
    """The lines of an old manifest that stand for graph branches.

    A lock of a schema change was such a line too, and so were runs, a notion that is gone, up to version 2; since then
    their names are like any others.
    """
    has_runs = read_stamp(tables.schema(tables.head(MANIFEST))) < RUNS_GONE
    return [
        fork
        for fork in tables.list_forks(MANIFEST)
        if fork.name != SCHEMA_APPLY_LOCK and not (has_runs and fork.name.startswith(RUN_PREFIX))
    ]


class LegacyRefs(Refs):
    """The branches of an old graph in the shape of ref objects, for a read-only open."""

    def __init__(self, objects: ObjectStore, graph: LegacyGraph) -> None:
        super().__init__(objects)
        self._branches = {ref.name: ref for ref in graph.branches()}

    def read(self, name: str) -> StoredRef | None:
        ref = self._branches.get(name)
        return StoredRef(ref, Token(""), None) if ref else None

    def names(self) -> list[str]:
        return sorted(self._branches)


class LegacyLog(CommitLog):
    """The commits of an old graph, for a read-only open. Pins are read from the manifest, version by version."""

    def __init__(self, tables: TableStore, graph: LegacyGraph, manifest: Manifest) -> None:
        super().__init__(tables)
        heads = [graph.head(ref.manifest_branch, manifest.read(ref).version) for ref in graph.branches()]
        self._old = CommitGraph([*graph.commits(), *heads])
        self._manifest = manifest

    def newest_of(self, incarnation: str) -> str | None:
        return None

    def files(self) -> dict[str, str]:
        return {}

    def pins_of_many(self, commit_ids: Collection[str]) -> Iterator[tuple[str, Pins]]:
        return iter(())

    def knows(self, commit_ids: Sequence[str]) -> set[str]:
        return {one for one in commit_ids if one in self._old}

    def get(self, commit_id: str) -> GraphCommit | None:
        return self._old.get(commit_id)

    def graph(self) -> CommitGraph:
        return self._old

    def pins(self, commit_id: str) -> Pins | None:
        commit = self._old.get(commit_id)
        if commit is None:
            return None
        try:
            return self._manifest.read_line(commit.manifest_branch, commit.manifest_version).tables
        except TableNotFound:
            return None


def _mint(*parts: str) -> str:
    """An id that everybody who looks at the same old graph makes up alike."""
    return str(ULID(hashlib.sha256("\0".join(("omnigraph", *parts)).encode()).digest()[:16]))
