"""Salvage: write out all that can be read of a damaged graph, with a list of what cannot. Changes nothing.

It leans on as little as possible: not on the newest manifest of `main`, not on the commit log, not on refs or schemas
being sound. Each line of the manifest is read at its newest version that opens; a table that cannot be read whole is
read fragment by fragment; a state whose schema is lost is written with its columns as they are stored. The result is
JSON lines that `omnigraph load` reads, the schema, and `report.json`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest, NotFound, OmniGraphError
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import get_commit, of_commit, table_of
from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import BranchRef, Snapshot, TablePin
from omnigraph.read.export import record_lines
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.objects.path_segments import encode_name
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion


@dataclass(frozen=True, slots=True)
class SalvagedTable:
    """One table of one state: the rows that were written, and what could not be read of it."""

    table_key: str
    version: int
    rows: int
    published_rows: int
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SalvagedState:
    """One branch or commit: which commit it is, where its rows went, its tables, and what is lost."""

    name: str
    graph_commit_id: str | None
    path: str | None
    tables: tuple[SalvagedTable, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """Everything that was written and everything that could not be."""

    path: str
    states: tuple[SalvagedState, ...]
    lost: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The rows that were written."""
        return sum(table.rows for state in self.states for table in state.tables)

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        tables = [table for state in self.states for table in state.tables]
        return not (self.lost or any(state.lost for state in self.states) or any(table.lost for table in tables))

    @property
    def exit_code(self) -> int:
        """0 when everything could be read, 1 otherwise."""
        return 0 if self.whole else 1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "rows": self.rows, "whole": self.whole}


@dataclass
class _Found:
    """A state to write out."""

    name: str
    snapshot: Snapshot
    lost: list[str] = field(default_factory=list)


def salvage(
    uri: str | os.PathLike[str], to: str | os.PathLike[str], *, at: Iterable[str] = (), branches: Iterable[str] = ()
) -> SalvageReport:
    """Write all that can be read of the graph at `uri` into the directory `to`.

    All branches by default; `branches` names some of them, and `at` commits by their ids.
    """
    target = Path(to)
    if target.exists() and any(target.iterdir()):
        raise BadRequest(f"salvage: {target} is not empty; name a new directory")
    root = parse_root(uri)
    if root.is_local and not Path(root.path).is_dir():
        raise NotFound(f"salvage: there is nothing at {root.uri}", uri=root.uri)
    store = GraphStore(root, read_only=True)
    lost: list[str] = []
    wanted = frozenset(branches)
    found = [_of_commit(store, commit_id, lost) for commit_id in at]
    if wanted or not found:
        found += _branches(store, wanted, lost)
    target.mkdir(parents=True, exist_ok=True)
    states = tuple(_write(store, state, target) for state in found if state is not None)
    report = SalvageReport(str(target), states, tuple(lost))
    (target / "report.json").write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2))
    return report


def _of_commit(store: GraphStore, commit_id: str, lost: list[str]) -> _Found | None:
    try:
        return _Found(commit_id, of_commit(store, get_commit(store, commit_id)))
    except OmniGraphError as error:
        lost.append(f"commit {commit_id}: {error.message}")
        return None


def _branches(store: GraphStore, wanted: frozenset[str], lost: list[str]) -> list[_Found | None]:
    """The newest readable state of every branch, and of every line of the manifest that no readable ref names."""
    refs: list[BranchRef] = []
    for name in _tried(store.refs.names, "the list of branches", lost) or []:
        ref = _tried(partial(store.refs.get, name), f"the ref of branch `{name}`", lost)
        refs += [ref] if ref is not None else []
    named = {ref.manifest_branch for ref in refs}
    # A line whose ref is damaged, or of a branch that was deleted: its head row says which branch it was.
    nameless = [line for line in (None, *_lines(store, lost)) if line not in named]
    refs += [BranchRef(f"line {line or 'main'}", line or "main", line) for line in nameless]
    return [_newest(store, ref, lost) for ref in refs if not wanted or ref.name in wanted]


def _lines(store: GraphStore, lost: list[str]) -> list[str]:
    """The lines of the manifest, by the names of their directories."""
    prefix = f"{MANIFEST}/tree/"
    found = _tried(lambda: store.objects.list(f"{MANIFEST}/tree"), "the lines of the manifest", lost) or []
    versions = [entry.path.removeprefix(prefix).partition("/_versions/") for entry in found]
    return sorted({line for line, separator, _ in versions if separator})


def _newest(store: GraphStore, ref: BranchRef, lost: list[str]) -> _Found | None:
    """The newest version of a line that can be read."""
    base = f"{MANIFEST}/tree/{ref.manifest_branch}" if ref.manifest_branch else MANIFEST
    entries = _tried(lambda: store.objects.list(f"{base}/_versions"), f"the manifest of {ref.name}", lost) or []
    names = [entry.path.rpartition("/")[2].removesuffix(".manifest") for entry in entries]
    versions = sorted((2**64 - 1 - int(name) for name in names if name.isdigit()), reverse=True)
    missed: list[str] = []
    for version in versions:
        state: ManifestState | None = _tried(
            partial(store.manifest.read_line, ref.manifest_branch, version),
            f"manifest version {version}",
            missed,
        )
        if state is not None:
            snapshot = Snapshot(ref, state.version, state.head, state.schema_digest, state.tables)
            name = ref.name if not ref.name.startswith("line ") else f"{state.head.branch} ({ref.name})"
            return _Found(name, snapshot, missed)
    lost.append(f"branch `{ref.name}`: no version of its manifest can be read")
    lost += missed
    return None


def _write(store: GraphStore, state: _Found, target: Path) -> SalvagedState:
    directory = target / encode_name(state.name)
    directory.mkdir()
    snapshot, lost = state.snapshot, list(state.lost)
    schema = _tried(lambda: store.schemas.get(snapshot.schema_digest), "the schema", lost)
    catalog: Catalog | None = schema[1] if schema else None
    if schema:
        (directory / "schema.pg").write_text(schema[0])
    else:
        lost.append("the rows are written with their columns as they are stored")
    ordered = sorted(snapshot.tables.values(), key=lambda pin: (not pin.table_key.startswith("node:"), pin.table_key))
    path = directory / "data.jsonl"
    with path.open("wb") as out:
        tables = tuple(_write_table(store, pin, catalog, out.write) for pin in ordered)
    return SalvagedState(state.name, snapshot.head.graph_commit_id, str(path), tables, tuple(lost))


def _write_table(
    store: GraphStore, pin: TablePin, catalog: Catalog | None, write: Callable[[bytes], object]
) -> SalvagedTable:
    lost: list[str] = []
    rows = 0
    type_ = catalog.table(pin.table_key) if catalog is not None else None
    for batch in _batches(store, table_of(pin), lost):
        lines = record_lines(type_, iter([batch])) if type_ is not None else _raw_lines(pin.table_key, batch)
        try:
            for line in lines:
                write(line)
                rows += 1
        except (ValueError, TypeError, KeyError) as error:
            lost.append(f"{batch.num_rows} rows cannot be written as JSON: {error}")
    if not lost and rows != pin.row_count:
        lost.append(f"{pin.row_count} rows were published and {rows} are there")
    return SalvagedTable(pin.table_key, pin.version, rows, pin.row_count, tuple(lost))


def _batches(store: GraphStore, table: TableVersion, lost: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a table, fragment by fragment, so that one that is damaged costs no others."""
    fragments = _tried(lambda: store.tables.fragments(table), f"{table}", lost)
    for fragment in fragments or []:
        # Wholly read before anything is written: half of a fragment would be hard to tell from all of it.
        batches = _tried(
            lambda fragment=fragment: store.tables.scan_table(
                table, fragments=[fragment.id], blobs="bytes"
            ).to_batches(),  # type: ignore[misc]  # a default binds the loop variable
            f"fragment {fragment.id} of {table} ({fragment.rows} rows)",
            lost,
        )
        yield from batches or []


def _fragment(store: GraphStore, table: TableVersion, fragment: int) -> list[pa.RecordBatch]:
    return list(store.tables.scan_table(table, fragments=[fragment], blobs="bytes").to_batches())


def _tried(work: Callable[[], Any], what: str, lost: list[str]) -> Any:
    """What `work` gives, or None with a line on what is lost."""
    try:
        with lance_errors("reading", what):
            return work()
    except OmniGraphError as error:
        lost.append(f"{what}: {error.message}")
        return None


def _raw_lines(table_key: str, batch: pa.RecordBatch) -> Iterator[bytes]:
    kind, _, name = table_key.partition(":")
    for row in batch.to_pylist():
        data = {key: value for key, value in row.items() if value is not None and key not in ("src", "dst")}
        record: dict[str, Any] = {"type": name, "data": data}
        if kind == "edge":
            record = {"edge": name, "from": row["src"], "to": row["dst"], "data": data}
        yield orjson.dumps(record, default=_plain) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)
