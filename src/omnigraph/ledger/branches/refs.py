"""Ref objects: the authority on which branches and tags exist.

One small JSON object per branch and per tag. Making one is a put-if-absent: that is the instant at which the name
exists, whole, for everybody. Deleting one is a delete-if-match of the very object that was looked at: who was paused
between the look and the deletion removes nothing that was made since. The object of `main` also holds the id of the
graph; a path without it holds no graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import orjson

from omnigraph.errors import InternalError, StorageError, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.names import SYSTEM_NAMES
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore, Token
from omnigraph.storage.objects.path_segments import decode_name, encode_name
from omnigraph.times import aware

BRANCHES_PREFIX = "_refs/branches"
TAGS_PREFIX = "_refs/tags"
REF_FORMAT = 1
_READERS = 8

TOMBSTONE_SECONDS = 3600.0
"""The least time that the tombstone of a deleted name stays. A removal that stops for minutes right before its last
request could hit a later object, so nobody may be likely to take the name again at that time."""

declare("ref_delete.checked", "The ref object was read and is the one to go; it is still there")


@dataclass(frozen=True, slots=True)
class TagRef:
    """A name for a commit that `cleanup` respects."""

    name: str
    graph_commit_id: str
    created_by: str | None = None
    created_at: int = 0

    @property
    def created(self) -> datetime:
        """When it was made."""
        return aware(self.created_at)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StoredRef:
    """A branch ref as it was read, with the token of that content and, for `main`, the id of the graph."""

    ref: BranchRef
    token: Token
    graph_id: str | None = None


_LONGEST_OBJECT_NAME = 255
"""What file systems take as one part of a path; new names are shorter by a margin."""


class Refs:
    """The branches and tags of one graph, read afresh on each call."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def read(self, name: str) -> StoredRef | None:
        """The branch of that name, or None."""
        path = branch_path(name)
        found = self._object(path)
        if found is None:
            return None
        data, token = found
        content = _content(data, path)
        try:
            return StoredRef(_branch(content), token, content.get("graph_id"))
        except TypeError as cause:
            raise damaged_ref(path) from cause

    def get(self, name: str) -> BranchRef | None:
        """The branch of that name as a plain value, or None."""
        found = self.read(name)
        return found.ref if found else None

    def names(self) -> list[str]:
        """The names of all public branches, sorted: one listing, no ref object is read."""
        return [name for name in self._names(BRANCHES_PREFIX) if name not in SYSTEM_NAMES]

    def create(self, ref: BranchRef, *, graph_id: str | None = None) -> bool:
        """Make a branch exist. False when the name is taken: exactly one of many callers gets True."""
        content = {"format": REF_FORMAT, **asdict(ref)}
        if graph_id is not None:
            content["graph_id"] = graph_id
        data = orjson.dumps(content, option=orjson.OPT_INDENT_2)
        try:
            self._objects.put_if_absent(branch_path(ref.name), data)
        except ObjectExists:
            return self._is_ours(ref)
        return True

    def delete(self, ref: BranchRef) -> bool:
        """Remove a branch, if the name still stands for this incarnation; False when it does not (any more)."""
        stored = self.read(ref.name)
        if stored is None or stored.ref.incarnation != ref.incarnation:
            return False
        failpoint("ref_delete.checked")
        return self._delete(branch_path(ref.name), stored.token)

    def tag(self, name: str) -> TagRef | None:
        """The tag of that name, or None."""
        found = self._object(tag_path(name))
        if found is None:
            return None
        content = _content(found[0], tag_path(name))
        try:
            return TagRef(content["name"], content["graph_commit_id"], content.get("created_by"), content["created_at"])
        except KeyError as cause:
            raise damaged_ref(tag_path(name)) from cause

    def tag_names(self) -> list[str]:
        """The names of all tags, sorted: no ref object is read."""
        return self._names(TAGS_PREFIX)

    def tags(self) -> list[TagRef]:
        """All tags, sorted by name."""
        return [tag for name in self._names(TAGS_PREFIX) if (tag := self.tag(name)) is not None]

    def create_tag(self, tag: TagRef) -> bool:
        """Make a tag exist. False when the name is taken."""
        data = orjson.dumps({"format": REF_FORMAT, **asdict(tag)}, option=orjson.OPT_INDENT_2)
        try:
            self._objects.put_if_absent(tag_path(tag.name), data)
        except ObjectExists:
            return False
        return True

    def delete_tag(self, name: str) -> bool:
        """Remove a tag; False when there was none."""
        found = self._object(tag_path(name))
        return found is not None and self._delete(tag_path(name), found[1])

    def _object(self, path: str) -> tuple[bytes, Token] | None:
        """A ref object, or None. A name that no object can have is one that is not there; the store did not fail."""
        if len(path.rpartition("/")[2]) > _LONGEST_OBJECT_NAME:
            return None
        try:
            return self._objects.get(path)
        except ObjectNotFound:
            return None

    def sweep(self, older_than: float) -> int:
        """Remove the tombstones of branches and tags that were deleted this many seconds ago, or longer; how many."""
        age = max(older_than, TOMBSTONE_SECONDS)
        return sum(self._objects.remove_tombstones(prefix, age) for prefix in (BRANCHES_PREFIX, TAGS_PREFIX))

    def _delete(self, path: str, token: Token) -> bool:
        """Remove exactly what was read: who was paused since then finds out, and a newer ref of that name stays."""
        try:
            self._objects.delete_if_match(path, token)
        except LostPrecondition:
            return False
        return True

    def _names(self, prefix: str) -> list[str]:
        files = (entry.path.removeprefix(f"{prefix}/") for entry in self._objects.list(prefix))
        return sorted(decode_name(file.removesuffix(".json")) for file in files if file.endswith(".json"))

    def _is_ours(self, ref: BranchRef) -> bool:
        """A put whose answer was lost and that was sent again meets its own object."""
        stored = self.read(ref.name)
        return stored is not None and stored.ref.incarnation == ref.incarnation

    def list(self) -> list[BranchRef]:
        """All public branches, sorted by name. One that goes away meanwhile is left out."""
        names = self.names()
        if len(names) <= _READERS:
            found = [self.get(name) for name in names]
        else:
            with ThreadPoolExecutor(min(_READERS, len(names)), thread_name_prefix="omnigraph-refs") as readers:
                found = list(readers.map(self.get, names))
        return [ref for ref in found if ref is not None]


def branch_path(name: str) -> str:
    """Where the ref object of a branch is, relative to the graph."""
    return f"{BRANCHES_PREFIX}/{encode_name(name)}.json"


def tag_path(name: str) -> str:
    """Where the ref object of a tag is, relative to the graph."""
    return f"{TAGS_PREFIX}/{encode_name(name)}.json"


def _content(data: bytes, path: str) -> Mapping[str, Any]:
    try:
        content = orjson.loads(data)
        known = int(content["format"]) <= REF_FORMAT
    except (ValueError, KeyError, TypeError) as cause:
        raise damaged_ref(path) from cause
    if not known:
        raise InternalError(f"the ref object {path} was written by a newer program: upgrade omnigraph first")
    return dict(content)


def damaged_ref(path: str, what: str = "damaged") -> StorageError:
    """The error for a ref object that is there no more, or cannot be read."""
    return StorageError(
        f"the ref object {path} is {what}: put it back from a copy of the graph, or see what `omnigraph salvage` finds",
        StorageKind.PERMANENT,
        path=path,
    )


_BRANCH_FIELDS = tuple(entry.name for entry in fields(BranchRef))


def _branch(content: Mapping[str, Any]) -> BranchRef:
    known: dict[str, Any] = {name: content[name] for name in _BRANCH_FIELDS if name in content}
    return BranchRef(**known)
