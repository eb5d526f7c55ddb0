"""Accepted schemas: one object each, named by its digest and kept for ever: old snapshots are read with theirs."""

from __future__ import annotations

import contextlib
import hashlib
import threading

from omnigraph.errors import NotFound, StorageError, StorageKind
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.catalog_json import accepted_schema_bytes, accepted_schema_from_bytes, catalog_digest
from omnigraph.storage.objects.object_errors import ObjectExists, ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

SCHEMAS_PREFIX = "_schemas"
CURRENT_SOURCE = "_schema.pg"
"""The accepted schema of `main`, for people to read. Derived: only graphs older than `_schemas` are read by it."""


class SchemaStore:
    """The schemas of one graph. What was read once is kept: a digest never means anything else."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._known: dict[str, tuple[str, Catalog]] = {}
        self._lock = threading.Lock()

    def put(self, source: str, catalog: Catalog) -> str:
        """Store an accepted schema; its digest. Storing it again changes nothing."""
        digest = self.keep(source, catalog)
        with contextlib.suppress(ObjectExists):
            self._objects.put_if_absent(schema_path(digest), accepted_schema_bytes(source, catalog))
        return digest

    def keep(self, source: str, catalog: Catalog) -> str:
        """Know a schema in this process without storing it; its digest."""
        digest = catalog_digest(catalog, source)
        with self._lock:
            self._known[digest] = (source, catalog)
        return digest

    def get(self, digest: str) -> tuple[str, Catalog]:
        """Source and catalog of an accepted schema."""
        with self._lock:
            found = self._known.get(digest)
        if found is not None:
            return found
        try:
            data, _ = self._objects.get(schema_path(digest))
        except ObjectNotFound as cause:
            raise NotFound(
                f"the schema {digest} is not in the graph: {schema_path(digest)} is missing. Restore it from a copy",
                digest=digest,
            ) from cause
        read = _read(data, digest)
        with self._lock:
            return self._known.setdefault(digest, read)

    def unused_id(self) -> int:
        """The first number that no stored schema has given out as an id, whatever branch it is of.

        Only under the schema-apply lock does it stay unused. A schema that cannot be read is passed over: the counters
        of those that came after it go further.
        """
        highest = 1
        for entry in self._objects.list(SCHEMAS_PREFIX):
            digest = entry.path.rpartition("/")[2].removesuffix(".json")
            with contextlib.suppress(NotFound, StorageError):
                highest = max(highest, self.get(digest)[1].next_id)
        return highest

    def write_current(self, source: str) -> None:
        """Refresh the schema of `main` that people read."""
        self._objects.put(CURRENT_SOURCE, source.encode())


def _read(data: bytes, digest: str) -> tuple[str, Catalog]:
    """The schema, if it is the one that its name says: the name is the digest of the content."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(digest)
    return accepted_schema_from_bytes(data)


def _damaged(digest: str) -> StorageError:
    return StorageError(
        f"the schema object {schema_path(digest)} is damaged: put it back from a copy. States with another schema can "
        "be read, and `omnigraph salvage` takes out the rows of this one too",
        StorageKind.PERMANENT,
        path=schema_path(digest),
    )


def schema_path(digest: str) -> str:
    """Where an accepted schema is, relative to the graph."""
    return f"{SCHEMAS_PREFIX}/{digest}.json"
