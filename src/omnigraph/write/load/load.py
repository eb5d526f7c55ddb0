"""Load data in bulk: decode, check, write fragments as rows come in, and publish once, whatever the size."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.config import settings
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.queue import EVERYTHING, Footprint
from omnigraph.ledger.values import MAIN, BranchRef, GraphCommit, Snapshot, StreamBatch, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.scratch import scratch_folder
from omnigraph.write.decode.inputs import Decode, InputOptions, find_graph_type, open_input
from omnigraph.write.load.appended import Appended
from omnigraph.write.load.input_size import is_small
from omnigraph.write.load.load_append import AddingLoad
from omnigraph.write.load.load_merge import MergingLoad
from omnigraph.write.progress import ProgressCallback, ProgressReporter
from omnigraph.write.results import LoadResult, PendingIndex, TableLoad
from omnigraph.write.validate.collector import KEPT_PER_KIND, ViolationCollector

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_logger = logging.getLogger("omnigraph.write")


class LoadMode(StrEnum):
    """What happens to rows that are there: append refuses their ids, merge updates them, overwrite drops them all."""

    APPEND = "append"
    MERGE = "merge"
    OVERWRITE = "overwrite"


def load(
    store: GraphStore,
    data: Any,
    *,
    mode: str,
    type: str | None = None,
    src: str | None = None,
    dst: str | None = None,
    columns: Mapping[str, str] | None = None,
    branch: str = MAIN,
    from_: str | None = None,
    actor: str | None = None,
    if_commit: str | None = None,
    progress: ProgressCallback | None = None,
    batch: StreamBatch | None = None,
    kept_violations: int = KEPT_PER_KIND,
) -> LoadResult:
    """Load `data` into a branch in process, as one commit.

    `data`: a path, directory or glob, several of them, an open file, bytes, Python rows, an Arrow table, a pandas or
    Polars frame. JSON records say their type themselves; rows of columns are of `type`, with `src` and `dst` naming the
    ends of edges and `columns` mapping other names to properties. `from_` makes the branch on the way; if the load
    fails, the branch goes again. A `batch` of a stream that the branch has already is not loaded again. A refusal
    names the first `kept_violations` of each kind.
    """
    chosen = load_mode(mode)
    store.refuse_if_read_only("load")
    with LoadBranch(store, branch, from_, actor) as target, ExitStack() as stack:
        options = InputOptions(type, src, dst, columns)
        decode = open_input(data, options, stack)
        directory = stack.enter_context(scratch_folder("load"))
        appended = stack.enter_context(Appended())

        def prepare(snapshot: Snapshot, session: WriteSession, counts: dict[str, int]) -> WriteIntent | None:
            reporter = ProgressReporter("load", progress)
            if appended.can_go_on(snapshot, session):
                return appended.go_on(snapshot, session, counts, reporter)
            return prepare_load(
                store,
                snapshot,
                session,
                decode,
                options,
                chosen,
                counts,
                reporter,
                directory,
                appended,
                kept_violations,
            )

        footprint = EVERYTHING if is_small(data, settings().queued_load_bytes) else None
        return commit_load(store, target, chosen, prepare, if_commit=if_commit, footprint=footprint, batch=batch)


PrepareLoad = Callable[[Snapshot, WriteSession, dict[str, int]], WriteIntent | None]
"""Stages one load on a snapshot and fills in the rows per table; None when it changes nothing."""


def commit_load(
    store: GraphStore,
    target: LoadBranch,
    mode: LoadMode,
    prepare: PrepareLoad,
    *,
    if_commit: str | None = None,
    footprint: Footprint | None = None,
    engine: str = "local",
    batch: StreamBatch | None = None,
) -> LoadResult:
    """Run a load as one write, whichever engine prepares it; then the branch that was made for it stays."""
    counts: dict[str, int] = {}
    skipped = False

    def prepared(snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        nonlocal skipped
        counts.clear()
        if batch is None:
            return prepare(snapshot, session, counts)
        # Known without looking: the snapshot has just been made of this state.
        skipped = store.manifest.read(snapshot.branch, snapshot.manifest_version).has_batch(batch)
        intent = None if skipped else prepare(snapshot, session, counts)
        return intent and replace(intent, batches=(batch,), about=str(batch))

    commit = run_write(
        store,
        target.name,
        prepared,
        actor=target.actor,
        retry=RetryPolicy.SURFACE if mode is LoadMode.OVERWRITE else RetryPolicy.PREPARE_AGAIN,
        if_commit=if_commit,
        operation="load",
        footprint=footprint,
    )
    target.keep()
    return replace(_load_result(store, target, mode, counts, commit, engine), batch=batch, skipped=skipped)


def load_mode(mode: str) -> LoadMode:
    """The mode of that name."""
    try:
        return LoadMode(mode)
    except ValueError:
        raise BadRequest(f"`{mode}` is not a load mode; use append, merge or overwrite") from None


class LoadBranch:
    """The branch that a load goes to; made on the way when it does not exist, and removed again when the load fails."""

    def __init__(self, store: GraphStore, name: str, base: str | None, actor: str | None) -> None:
        self.name = name
        self.base = base
        self._made: BranchRef | None = None
        self.actor = actor
        self._store = store
        self._kept = False

    def __enter__(self) -> LoadBranch:
        if self.base is not None and self._store.refs.get(self.name) is None:
            self._made = create_branch(self._store, self.name, self.base, actor=self.actor)
        return self

    @property
    def created(self) -> bool:
        """Whether the branch was made on the way."""
        return self._made is not None

    def keep(self) -> None:
        """The load is done: the branch stays."""
        self._kept = True

    def __exit__(self, *failure: object) -> None:
        if self._made is not None and not self._kept:
            try:
                delete_branch(self._store, self.name, as_made=self._made)
            except OmniGraphError as error:
                _logger.warning("the branch `%s` that a failed load made stays: %s", self.name, error)


def prepare_load(
    store: GraphStore,
    snapshot: Snapshot,
    session: WriteSession,
    decode: Decode,
    options: InputOptions,
    mode: LoadMode,
    counts: dict[str, int],
    progress: ProgressReporter,
    directory: Path,
    appended: Appended,
    kept_violations: int = KEPT_PER_KIND,
) -> WriteIntent | None:
    """Decode, check and stage one load on a snapshot; None when it changes nothing. Fills in rows per table."""
    violations = ViolationCollector(kept_violations)
    catalog = store.catalog(snapshot.schema_digest)
    directory = Path(tempfile.mkdtemp(dir=directory))
    work: AddingLoad | MergingLoad
    if mode is LoadMode.MERGE:
        work = MergingLoad(store, snapshot, session, violations, directory)
    else:
        work = AddingLoad(
            store, snapshot, session, violations, replaces=mode is LoadMode.OVERWRITE, directory=directory
        )
    try:
        for rows in decode(catalog, violations):
            work.add(rows)
            progress.tell("decode", records=rows.count, bytes=rows.table.nbytes)
        progress.tell("check")
        if isinstance(work, AddingLoad) and mode is LoadMode.OVERWRITE and not violations:
            work.replace(overwritten_type(catalog, options, work.tables))
        counts.update(work.finish())
        violations.raise_if_any("the load")
        writes = work.stage()
    except BaseException:
        work.abandon()
        raise
    if isinstance(work, AddingLoad):
        appended.note(work, counts)
    progress.tell("commit")
    if not writes:
        return None
    return session.intent(WriterKind.LOAD, snapshot, writes, reads=work.reads)


def overwritten_type(catalog: Catalog, options: InputOptions, seen: Collection[str]) -> GraphType | None:
    """The type that an overwrite replaces by no rows at all: the named one, when the input has no row of it."""
    if options.type is not None:
        return find_graph_type(catalog, options)
    if not seen:
        raise BadRequest(
            "the input has no record and names no type, so there is nothing to overwrite; to empty a type, load a "
            "table without rows (a CSV file with nothing but its header, an empty frame) and name the type with type=… "
            "(--type on the command line)"
        )
    return None


def _load_result(
    store: GraphStore,
    target: LoadBranch,
    mode: LoadMode,
    counts: Mapping[str, int],
    commit: GraphCommit | None,
    engine: str,
) -> LoadResult:
    digest = commit.schema_digest if commit is not None else store.snapshot(branch=target.name).schema_digest
    return LoadResult(
        store.uri,
        target.name,
        target.base,
        target.created,
        mode.value,
        tuple(TableLoad(key, counts[key]) for key in sorted(counts)),
        commit,
        engine,
        pending_indexes(store.catalog(digest), counts) if commit is not None else (),
        target.actor,
    )


def pending_indexes(catalog: Catalog, counts: Mapping[str, int]) -> tuple[PendingIndex, ...]:
    """The declared indexes of the tables that got rows: a load builds none."""
    return tuple(
        PendingIndex(key, property_.name)
        for key in sorted(counts)
        if counts[key] and (type_ := catalog.table(key)) is not None
        for property_ in type_.properties
        if property_.indexed
    )
