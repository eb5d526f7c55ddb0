"""Loads that only add: append, and overwrite, which adds to tables that it empties first.

Fragments are written as rows come in; only key columns are kept for the checks across rows. When a rule is broken the
rest of the input is still checked, so that all violations are reported, and nothing more is written.

An append that another writer came before is not decoded and written again: its files are good for any later state of
the same tables. Only the checks against what is committed run again (`onto`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableWrite
from omnigraph.ledger.values import BranchRef, Snapshot
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.values import StagedWrite
from omnigraph.write.committed import CommittedRows
from omnigraph.write.load.load_attempt import LoadAttempt
from omnigraph.write.load.load_keys import KeyCollector
from omnigraph.write.load.table_writer import TableWriter
from omnigraph.write.rows.fill_vectors import check_and_fill
from omnigraph.write.rows.overlay import fill_defaults
from omnigraph.write.rows.row_ids import with_ids
from omnigraph.write.rows.rows import Rows
from omnigraph.write.stage_tables import storable
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph_rules import check_change, check_duplicate_ids, check_existing_ids

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


class AddingLoad(LoadAttempt):
    """One attempt at a load with mode append (or overwrite, with `replaces`)."""

    def __init__(
        self,
        store: GraphStore,
        snapshot: Snapshot,
        session: WriteSession,
        violations: ViolationCollector,
        *,
        replaces: bool,
        directory: Path,
    ) -> None:
        super().__init__(store, snapshot, session, violations, directory)
        self._replaces = replaces
        self._keys: dict[str, KeyCollector] = {}
        self._writers: dict[str, TableWriter] = {}
        self._own_ids: set[str] = set()
        self._written: dict[str, StagedWrite] = {}

    def add(self, rows: Rows) -> None:
        """Check rows by themselves and write them."""
        type_ = self._type(rows.table_key)
        own_ids = bool(type_.key) or rows.table["id"].null_count < rows.count
        if own_ids:
            self._own_ids.add(rows.table_key)
        rows = with_ids(type_, fill_defaults(type_, rows), self._violations)
        rows = check_and_fill(type_, rows, self._vectors, self._violations)
        if rows.table_key not in self._keys:
            self._keys[rows.table_key] = KeyCollector(type_, self._directory)
        self._keys[rows.table_key].add(rows, with_ids=own_ids)
        if not self._violations and rows.count:
            self._write(rows)

    @property
    def tables(self) -> Collection[str]:
        """The tables that rows have come for."""
        return self._keys.keys()

    def replace(self, type_: GraphType | None) -> None:
        """Replace the content of a type even if no row of it has come."""
        if type_ is not None and type_.table_key not in self._keys:
            self._keys[type_.table_key] = KeyCollector(type_, self._directory)

    def _write(self, rows: Rows) -> None:
        line = self._session.line(self._snapshot.pin(rows.table_key))
        if rows.table_key not in self._writers:
            tables = self._store.tables
            stage = tables.stage_overwrite if self._replaces else tables.stage_append
            self._writers[rows.table_key] = TableWriter(rows.table_key, lambda batches: stage(line, batches))
        self._writers[rows.table_key].put(storable(self._store, line, rows.table))

    def finish(self) -> dict[str, int]:
        """Check across rows; the number of rows per table. What is broken is in the collector then."""
        changes = {key: keys.change(replaces_all=self._replaces, known_new=True) for key, keys in self._keys.items()}
        for table_key, change in changes.items():
            type_ = self._type(table_key)
            if table_key in self._own_ids:  # ids that were all made here are new
                check_duplicate_ids(type_, change, self._violations)
                if not self._replaces:
                    check_existing_ids(type_, change, self._committed, self._violations)
        check_change(self._catalog, changes, self._committed, self._violations)
        return {key: change.keys.num_rows for key, change in changes.items()}

    def stage(self) -> list[TableWrite]:
        """The staged writes of all tables."""
        writes = []
        for key in sorted(self._keys):
            pin = self._snapshot.pin(key)
            if key in self._writers:
                staged = self._writers[key].finish()
                if not self._replaces:
                    self._store.tables.files.note(staged.new_files)
                    self._written[key] = staged
                writes.append(self._session.table_write(pin, staged, carried=not self._replaces))
            elif self._replaces and pin.row_count:
                emptied = self._store.tables.stage_overwrite(self._session.line(pin), [])
                writes.append(self._session.table_write(pin, emptied))
        return writes

    def can_go_on(self, snapshot: Snapshot, branch: BranchRef) -> bool:
        """Whether what was written and staged can be committed on another state of the branch."""
        if self._replaces or snapshot.schema_digest != self._snapshot.schema_digest:
            return False
        for key, staged in self._written.items():
            pin = snapshot.tables.get(key)
            if pin is None or pin.owner != branch.incarnation:
                return False
            if (pin.location, pin.lance_branch) != (staged.location, staged.branch):
                return False
        return True

    def onto(self, snapshot: Snapshot, session: WriteSession, violations: ViolationCollector) -> list[TableWrite]:
        """Check what was staged against a later state and stage it there; `can_go_on` has said that this is right."""
        self._snapshot, self._session, self._violations = snapshot, session, violations
        self._committed = CommittedRows(self._store, snapshot)
        self.finish()
        violations.raise_if_any("the load")
        writes = []
        for key in sorted(self._written):
            pin = snapshot.pin(key)
            staged = self._store.tables.stage_again(session.line(pin), self._written[key])
            self._written[key] = staged
            writes.append(session.table_write(pin, staged, carried=True))
        return writes

    def discard(self) -> None:
        """Remove the files that will not be published."""
        while self._written:
            _, staged = self._written.popitem()
            # mypy does not see: a default binds the loop variable.
            _quietly(lambda staged=staged: self._store.tables.abandon(staged))  # type: ignore[misc]

    def abandon(self) -> None:
        """End the writers and hand over what they wrote, so that the session removes it."""
        for writer in self._writers.values():
            # mypy does not see: a default binds the loop variable.
            _quietly(lambda writer=writer: self._session.keep(writer.finish()))  # type: ignore[misc]


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # the failure that led here is the one to report
        return
