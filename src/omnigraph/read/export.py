"""Write a graph out: JSON lines that load back to an equal graph, or Parquet, one directory per type.

In process JSON lines are one stream in a stable order (nodes before edges, types by name, rows by id). Parts of tables
are written by a plain function that also runs inside Spark tasks.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet

from omnigraph.choices import Target
from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.ledger.snapshots import find_type, table_of
from omnigraph.read.export_target import replacing_parts
from omnigraph.schema.arrow import shown_columns
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.types import ListType, PropertyType, Scalar, ScalarType, VectorType
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Scheme, parse_root
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot

FORMATS = ("jsonl", "parquet")
_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What was written: rows per table, and where."""

    path: str
    format: str
    tables: tuple[tuple[str, int], ...]
    graph_commit_id: str
    engine: str = "local"

    @property
    def rows(self) -> int:
        """The rows of all tables together."""
        return sum(rows for _, rows in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "path": self.path,
            "format": self.format,
            "rows": self.rows,
            "tables": [{"table_key": key, "rows": rows} for key, rows in self.tables],
            "graph_commit_id": self.graph_commit_id,
            "engine": self.engine,
        }


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Some fragments of one table, to be written to one file. It pickles."""

    uri: str
    type: GraphType
    table: TableVersion
    fragments: tuple[int, ...] | None
    target: str
    format: str


def export_graph(
    store: GraphStore,
    path: str,
    *,
    at: Target = None,
    branch: str = "main",
    types: Sequence[str] | None = None,
    format: str = "jsonl",
) -> ExportSummary:
    """Write a snapshot to a file of JSON lines (`-` is standard output), or to a directory of Parquet."""
    snapshot = store.snapshot(at, branch=branch)
    chosen = exported_types(store, snapshot, types, format)
    if format == "parquet":
        parts = [
            ExportPart(
                store.uri,
                type_,
                table_of(snapshot.pin(type_.table_key)),
                None,
                part_path(path, type_, 0, format),
                format,
            )
            for type_ in chosen
        ]
        with replacing_parts(path, [part.target for part in parts]):
            counts = [(part.type.table_key, write_part(part)) for part in parts]
    elif path == "-":
        counts = [(type_.table_key, _write_lines(store, snapshot, type_, sys.stdout.buffer.write)) for type_ in chosen]
        sys.stdout.buffer.flush()
    else:
        counts = _write_file(store, snapshot, chosen, path)
    return ExportSummary(path, format, tuple(counts), snapshot.head.graph_commit_id)


def export_lines(store: GraphStore, snapshot: Snapshot, types: Sequence[str] | None = None) -> Iterator[bytes]:
    """JSON lines of a snapshot in a stable order, made as they are asked for."""
    for type_ in exported_types(store, snapshot, types, "jsonl"):
        yield from _lines(store, snapshot, type_)


def exported_types(store: GraphStore, snapshot: Snapshot, types: Sequence[str] | None, format: str) -> list[GraphType]:
    """The types to write, nodes before edges, by name."""
    if format not in FORMATS:
        raise BadRequest(f"`{format}` is not an export format; use {' or '.join(FORMATS)}")
    catalog = store.catalog(snapshot.schema_digest)
    if types is None:
        return list(catalog.types())
    named = {find_type(catalog, name).table_key for name in types}
    return [type_ for type_ in catalog.types() if type_.table_key in named]


def part_path(path: str, type_: GraphType, number: int, format: str) -> str:
    """Where a part of a table goes below the target."""
    return f"{path.rstrip('/')}/{type_.kind}-{type_.name}/part-{number:05d}.{format}"


def write_part(part: ExportPart) -> int:
    """Write one part; how many rows it has. Runs in any process."""
    tables = TableStore(parse_root(part.uri))
    batches = tables.scan(
        part.table,
        fragments=list(part.fragments) if part.fragments is not None else None,
        batch_size=_BATCH_ROWS,
        blobs="bytes",
    )
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    if part.format == "parquet":
        _store_file(part.target, lambda file: _write_parquet(file, part.type, batches.schema, counted()))
    else:
        _store_file(part.target, lambda file: file.writelines(record_lines(part.type, counted())))
    return rows


def record_lines(type_: GraphType, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Rows as lines that a load reads back: what is null is left out, an id only where no key makes it."""
    converters = {p.name: (p.column, _converter(p.type)) for p in type_.properties}
    for batch in batches:
        for row in batch.to_pylist():
            data: dict[str, Any] = {}
            record: dict[str, Any] = {"type": type_.name}
            if isinstance(type_, EdgeType):
                record = {"edge": type_.name, "from": row["src"], "to": row["dst"]}
            if not type_.key:
                # Beside the properties where one of them is called so.
                (record if "id" in type_.by_name else data)["id"] = row["id"]
            for name, (column, convert) in converters.items():
                value = row[column]
                if value is not None:
                    data[name] = convert(value) if convert is not None else value
            record["data"] = data
            yield orjson.dumps(record, option=_JSON) + b"\n"


_JSON = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_SUBCLASS


def _converter(type_: PropertyType) -> Callable[[Any], Any] | None:
    match type_:
        case ScalarType(scalar=Scalar.BLOB):
            return lambda value: {"base64": base64.b64encode(value).decode()}
        case ScalarType(scalar=Scalar.F32):
            return np.float32
        case VectorType() | ListType(item=Scalar.F32):
            return lambda value: np.asarray(value, np.float32)
        case _:
            return None


def _lines(store: GraphStore, snapshot: Snapshot, type_: GraphType) -> Iterator[bytes]:
    pin = snapshot.pin(type_.table_key)
    if pin.row_count:
        batches = store.tables.scan(table_of(pin), order_by=["id"], batch_size=_BATCH_ROWS, blobs="bytes")
        yield from record_lines(type_, batches)


def _write_lines(store: GraphStore, snapshot: Snapshot, type_: GraphType, write: Callable[[bytes], Any]) -> int:
    rows = 0
    for line in _lines(store, snapshot, type_):
        write(line)
        rows += 1
    return rows


def _write_file(store: GraphStore, snapshot: Snapshot, types: Sequence[GraphType], path: str) -> list[tuple[str, int]]:
    counts: list[tuple[str, int]] = []

    def write(file: Any) -> None:
        counts.extend((type_.table_key, _write_lines(store, snapshot, type_, file.write)) for type_ in types)

    _store_file(path, write)
    return counts


def _write_parquet(file: Any, type_: GraphType, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    shown = shown_columns(type_)
    plain = pa.schema([field.with_name(shown[field.name]) for field in schema])
    with pyarrow.parquet.ParquetWriter(file, plain) as writer:
        for batch in batches:
            writer.write_batch(batch.rename_columns(plain.names).cast(plain))


def _store_file(target: str, write: Callable[[Any], None]) -> None:
    """Make a file whole or not at all: written aside and renamed, or put in one go on an object store."""
    root = parse_root(target)
    if root.scheme is Scheme.LOCAL:
        path = Path(root.path)
        aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside.open("wb", buffering=1 << 20) as file:
                write(file)
            aside.replace(path)
        except OSError as error:
            raise StorageError(
                f"export: {target} cannot be written ({error.strerror or error}): choose another path, or check "
                "permissions and space",
                StorageKind.PERMANENT,
            ) from error
        finally:
            with suppress(OSError):
                aside.unlink()
        return
    from omnigraph.storage.objects.objects import open_objects

    sink = pa.BufferOutputStream()
    with pa.PythonFile(sink, "w") as file:
        write(file)
    directory, _, name = target.rpartition("/")
    open_objects(parse_root(directory)).put(name, bytes(sink.getvalue()))
