"""Copying a graph, live, between any two stores: all of its history, in one consistent state, resumable.

Files are copied first, what makes versions visible afterwards, and the reference of `main` last: until then there is no
graph at the target, only a marker that says what is under way. A copy that was interrupted is carried on by the same
call: files that are there already stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import orjson
from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import BadRequest, Conflict, InternalError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.refs import Refs
from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.layout import COPY_MARKER, RECOVERIES
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import open_store
from omnigraph.ledger.values import MAIN
from omnigraph.maintain.copying.carriers import LOCAL, Carriers
from omnigraph.maintain.copying.cut import Cut, commit_at, take_cut
from omnigraph.maintain.copying.files_below import are_missed, files_of, is_version
from omnigraph.storage.constants import LOCKS_DIRECTORY
from omnigraph.storage.leases.leases import Leases, LeaseTimes
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectInfo, ObjectStore, open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root, parse_root

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

COPY_LEASE = "copy"
_ROUNDS = 5
"""Looks at what is to be copied; one in which a file of a version has gone meanwhile is made again. Only cleanup takes
such files away."""

declare("copy.marked", "A copy has put its marker at the target; nothing is copied yet")
declare("copy.file", "One more file is copied")
declare("copy.files", "Every file is copied; log, tags and branches are not")
declare("copy.records", "Everything is copied but the reference of main: there is no graph at the target yet")


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What was copied: `files` and `bytes` by this call, `files_there` by one before it that was interrupted."""

    source: str
    target: str
    graph_commit_id: str
    branches: tuple[str, ...]
    commits: int
    files: int
    files_there: int
    bytes: int
    engine: str = "local"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "branches": list(self.branches)}


def copy(
    source: str,
    target: str,
    *,
    branches: Collection[str] = (),
    at: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    carriers: Callable[[int], Carriers] = lambda size: LOCAL,
) -> CopyResult:
    """Copy a graph to a place that holds nothing yet, or an unfinished copy of it. The source is not changed.

    With `branches`, only `main` and those; with `at`, only the branch of a commit (a tag, a time) as it was then, and
    `main` as that commit knows it. `progress` is called with the numbers of files that are copied and to be copied;
    `carriers` says who copies that many bytes.
    """
    there = parse_root(target)
    with open_store(source, read_only=True) as store:
        if store.is_old:
            raise BadRequest(
                f"{store.uri} has the layout of an older program: open it for writing once, which brings it up to "
                "date, and copy it then; or copy its directory while nobody writes to it",
                uri=store.uri,
            )
        _refuse_overlap(store.root, there)
        marker = _marker_of(store, branches, at)
        objects = open_objects(there)
        # Before the lease, which leaves its file: what is not ours is not touched at all.
        _refuse_others(objects, marker)
        with _held_target(objects):
            return _copy(store, objects, marker, branches, at, progress, carriers)


def _copy(
    store: GraphStore,
    objects: ObjectStore,
    marker: dict[str, Any],
    branches: Collection[str],
    at: str | None,
    progress: Callable[[int, int], None] | None,
    carriers: Callable[[int], Carriers],
) -> CopyResult:
    _refuse_others(objects, marker)
    objects.put(COPY_MARKER, orjson.dumps(marker))
    failpoint("copy.marked")
    for _ in range(_ROUNDS):
        cut = take_cut(store, branches, at)
        done = _copy_files(store, objects, cut, progress, carriers)
        if done is not None:
            break
    else:
        raise Conflict("copy: cleanup keeps removing history while it is copied; try again when it is done")
    failpoint("copy.files")
    _write_records(store, objects, TableStore(objects.root), cut)
    files, copied, engine = done
    main = next(state for ref, state in cut.states.items() if ref.name == MAIN)
    return CopyResult(
        source=store.uri,
        target=objects.root.uri,
        graph_commit_id=main.head.graph_commit_id,
        branches=tuple(sorted(ref.name for ref in cut.states)),
        commits=cut.log.num_rows,
        files=len(copied),
        files_there=len(files) - len(copied),
        bytes=sum(file.size for file in copied),
        engine=engine,
    )


@contextmanager
def _held_target(objects: ObjectStore) -> Iterator[None]:
    """Two copies to one place come one after the other; the second finds a graph there."""
    times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
    # The lease of a copy that died on an object store has to run out first; a lock on local disk is free at once.
    wait = settings().lease_wait_seconds + (0.0 if objects.root.is_local else times.lease_seconds)
    with Leases(objects.root, objects, times).acquire(COPY_LEASE, f"copy {ULID()}", wait=wait):
        yield


def _refuse_overlap(source: Root, target: Root) -> None:
    inside = f"{target.path}/".startswith(f"{source.path.rstrip('/')}/")
    around = f"{source.path}/".startswith(f"{target.path.rstrip('/')}/")
    if source.scheme is target.scheme and (inside or around):
        raise BadRequest(f"copy: {target.uri} and {source.uri} lie one within the other; choose another target")


def _marker_of(store: GraphStore, branches: Collection[str], at: str | None) -> dict[str, Any]:
    commit = commit_at(store, branches, at).graph_commit_id if at is not None else None
    return {"graph_id": store.graph_id, "branches": sorted(branches), "at": commit}


def _refuse_others(objects: ObjectStore, marker: dict[str, Any]) -> None:
    """A target that holds anything but an unfinished copy of the same is left alone."""
    uri = objects.root.uri
    strange = [name for name in objects.names() if name not in (LOCKS_DIRECTORY, COPY_MARKER)]
    if Refs(objects).get(MAIN) is not None:
        raise BadRequest(f"copy: there is a graph at {uri} already: choose another path", uri=uri)
    try:
        found = orjson.loads(objects.get(COPY_MARKER)[0])
    except ObjectNotFound:
        found = None
    except ValueError:
        found = {}
    if found is None and strange:
        raise BadRequest(f"copy: {uri} is not empty: it holds {', '.join(strange[:3])}. Choose another path", uri=uri)
    if found is not None and found != marker:
        raise BadRequest(
            f"copy: {uri} holds an unfinished copy of another graph, or one with other options: remove it, or choose "
            "another path",
            uri=uri,
        )


def _copy_files(
    store: GraphStore,
    objects: ObjectStore,
    cut: Cut,
    progress: Callable[[int, int], None] | None,
    carriers: Callable[[int], Carriers],
) -> tuple[list[ObjectInfo], list[ObjectInfo], str] | None:
    """Copy what is missing: all files of the cut, those that were copied now, and by what engine. None when one of
    them vanished, unless it was none: what a writer has staged is listed too, and goes when that gives up."""
    files = files_of(store, cut)
    there = {entry.path: entry.size for entry in objects.list()}
    missing = [file for file in files if there.get(file.path) != file.size]
    chosen = carriers(sum(file.size for file in missing))
    done = 0
    # What makes a version visible comes after what the version consists of.
    for part in (False, True):
        batch = [file for file in missing if is_version(file.path) is part]
        vanished = False
        for taken in chosen.carry(store.objects, objects, batch):
            vanished |= not taken
            done += 1
            if progress is not None:
                progress(done, len(missing))
            failpoint("copy.file")
        if vanished:
            arrived = {entry.path for entry in objects.list()}
            gone = {file.path for file in batch} - arrived
            if part or are_missed(store, cut, files, gone):
                return None
            files = [file for file in files if file.path not in gone]
            missing = [file for file in missing if file.path not in gone]
    wanted = {file.path for file in files}
    for path in there.keys() - wanted:
        if is_version(path):
            objects.delete(path)
    _check_complete(objects.root, cut, wanted)
    return files, missing, chosen.engine


def _check_complete(root: Root, cut: Cut, copied: Collection[str]) -> None:
    """Every branch can be read at the target: each version that it publishes opens there, and has its files."""
    tables = TableStore(root)
    for pin in cut.pins:
        table = table_of(pin)
        lacking = [path for path in tables.files.files(table) if path not in copied]
        if tables.count(table) != pin.row_count or lacking:
            what = f"lacks {lacking[0]}" if lacking else "has another number of rows"
            raise InternalError(f"copy: {table} {what} at the target. The source may be damaged: `omnigraph verify` it")


def _write_records(store: GraphStore, objects: ObjectStore, tables: TableStore, cut: Cut) -> None:
    """The log and the audit as they were at the cut, then tags and branches, and `main` last of all."""
    for location, rows in ((LOG, cut.log), (RECOVERIES, cut.audit)):
        objects.delete_prefix(location)
        if rows is not None:
            tables.create(location, rows.schema, rows=rows)
    refs = Refs(objects)
    for tag in cut.tags:
        refs.create_tag(tag)
    for ref in sorted(cut.states, key=lambda ref: ref.name == MAIN):
        if ref.name == MAIN:
            failpoint("copy.records")
        refs.create(ref, graph_id=store.graph_id if ref.name == MAIN else None)
    objects.delete(COPY_MARKER)
