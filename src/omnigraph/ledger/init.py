"""Making a graph, so that a crash at any instant leaves either no graph or a whole one.

The ref object of `main` is written last, by put-if-absent: with it the graph exists, whole; without it the path holds
no graph. A marker is written first. It tells the leftovers of an `init` that died, which the next `init` clears away,
from files that are somebody else's, which it refuses to touch.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import orjson
from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.refs import Refs
from omnigraph.ledger.history.commit_log import CommitLog
from omnigraph.ledger.history.log_rows import LogEntry
from omnigraph.ledger.layout import INIT_MARKER, OWN_NAMES, physical_schema, table_location
from omnigraph.ledger.manifest.manifest_rows import MANIFEST, SCHEMA, head_row, table_row, to_table
from omnigraph.ledger.schema_store import CURRENT_SOURCE, SchemaStore
from omnigraph.ledger.values import MAIN, BranchRef, GraphCommit, TablePin, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.storage.constants import LOCKS_DIRECTORY
from omnigraph.storage.leases.leases import Leases, LeaseTimes
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root

INIT_LEASE = "init"
_MAKERS = 8

declare("init.marked", "The marker of an init under way is written, nothing else")
declare("init.schema", "The schema is stored, no table is made")
declare("init.table", "One more table of a type is made")
declare("init.tables", "All tables are made, the manifest is not")
declare("init.manifest", "The manifest is made, the commit log is not")
declare("init.log", "Everything is made, the ref object of main is not: there is no graph yet")
declare("init.ref", "The ref object of main is written: the graph exists; the marker is still there")


def init_graph(root: Root, schema_source: str, *, actor: str | None = None) -> None:
    """Make a graph at `root`. Refuses a path that holds one, or anything else."""
    catalog = compile_schema(schema_source)
    if root.is_inside_a_file:
        raise _no_directory(root)
    objects, tables = open_objects(root), TableStore(root)
    _refuse_graph(root, objects, tables)
    # Before the lease, which leaves its file: what is not ours is not touched at all.
    _refuse_others(root, objects, tables)
    _make_directory(root)
    times = LeaseTimes(settings().lease_seconds, settings().lease_renewal_seconds)
    # The lease of an init that died on an object store has to run out first; a lock on local disk is free at once.
    wait = settings().lease_wait_seconds + (0.0 if root.is_local else times.lease_seconds)
    with Leases(root, objects, times).acquire(INIT_LEASE, f"init {ULID()}", wait=wait):
        _refuse_graph(root, objects, tables)
        _refuse_others(root, objects, tables)
        _clear_leftovers(objects)
        objects.put(INIT_MARKER, orjson.dumps({"started_at": time.time_ns() // 1000}))
        failpoint("init.marked")
        _make(objects, tables, schema_source, catalog, actor)
        objects.delete(INIT_MARKER)


def _make_directory(root: Root) -> None:
    if not root.is_local:
        return
    try:
        os.makedirs(root.path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _no_directory(root) from None
    except OSError as error:
        raise StorageError(
            f"the directory {root.uri} cannot be made ({error.strerror}): choose another path, or check permissions",
            StorageKind.CONFIGURATION,
        ) from error


def _no_directory(root: Root) -> BadRequest:
    return BadRequest(
        f"{root.uri} cannot hold a graph: a graph is a directory, and there is a file at this path or above it. "
        "Choose another path",
        uri=root.uri,
    )


def _refuse_graph(root: Root, objects: ObjectStore, tables: TableStore) -> None:
    old_graph = _marker_is_missing(objects) and tables.exists(MANIFEST)
    if Refs(objects).get(MAIN) is not None or old_graph:
        raise BadRequest(f"there is a graph at {root.uri} already: open it, or choose another path", uri=root.uri)


def _refuse_others(root: Root, objects: ObjectStore, tables: TableStore) -> None:
    """A graph has its directory for itself. What an `init` left that died is told by its marker."""
    strange = [name for name in objects.names() if name != LOCKS_DIRECTORY]
    if not strange or not _marker_is_missing(objects):
        return
    # Another init may have come to its end since the last look.
    _refuse_graph(root, objects, tables)
    more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
    raise BadRequest(
        f"{root.uri} is not empty: it holds {', '.join(strange[:3])}{more}. A graph has its directory for itself: "
        "choose another path, such as one below it",
        uri=root.uri,
    )


def _clear_leftovers(objects: ObjectStore) -> None:
    if _marker_is_missing(objects):
        return
    objects.delete(CURRENT_SOURCE)
    for name in OWN_NAMES:
        objects.delete_prefix(name)


def _marker_is_missing(objects: ObjectStore) -> bool:
    try:
        objects.get(INIT_MARKER)
    except ObjectNotFound:
        return True
    return False


def _make(objects: ObjectStore, tables: TableStore, source: str, catalog: Catalog, actor: str | None) -> None:
    incarnation, now = str(ULID()), time.time_ns() // 1000
    schemas = SchemaStore(objects)
    digest = schemas.put(source, catalog)
    failpoint("init.schema")
    pins = _make_tables(tables, catalog, incarnation)
    failpoint("init.tables")
    commit = GraphCommit(
        graph_commit_id=str(ULID()),
        manifest_branch=None,
        manifest_version=1,
        parent_commit_id=None,
        merged_parent_commit_id=None,
        actor_id=actor,
        created_at=now,
        kind=WriterKind.INIT,
        changes_data=True,
        branch=MAIN,
        incarnation=incarnation,
        schema_digest=digest,
    )
    rows = [*(table_row(pin) for pin in pins.values()), head_row(commit)]
    tables.create(MANIFEST, SCHEMA, rows=to_table(rows))
    failpoint("init.manifest")
    CommitLog(tables).create(LogEntry(commit, pins))
    schemas.write_current(source)
    failpoint("init.log")
    main = BranchRef(MAIN, incarnation, None, created_by=actor, created_at=now)
    if not Refs(objects).create(main, graph_id=str(ULID())):
        raise BadRequest("another init made a graph here first: open it, or choose another path")
    failpoint("init.ref")


def _make_tables(tables: TableStore, catalog: Catalog, owner: str) -> dict[str, TablePin]:
    def make(graph_type: GraphType) -> TablePin:
        made = tables.create(table_location(graph_type), physical_schema(graph_type))
        failpoint("init.table")
        return TablePin(graph_type.table_key, graph_type.id, made.location, None, made.version, 0, owner)

    with ThreadPoolExecutor(_MAKERS, thread_name_prefix="omnigraph-init") as makers:
        pins = list(makers.map(make, catalog.types()))
    return {pin.table_key: pin for pin in sorted(pins, key=lambda pin: pin.table_key)}
