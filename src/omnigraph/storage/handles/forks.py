"""Forks: Lance branches of one table, each owned by the graph branch that wrote to the table.

Lance makes a branch in two steps (its files, then its reference), so names must be unique and never used again: a name
that crashed half-way can neither be made nor removed. The layer above mints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import orjson
from lance.dataset import LanceDataset

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.cloned_forks import clone_as_fork, remove_clone
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import FileDamaged, TableNotFound, lance_errors
from omnigraph.storage.objects.object_errors import ObjectNotFound, is_passing
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.values import ForkInfo, TableVersion

Result = TypeVar("Result")

declare("storage.fork.before", "in create_fork, before the Lance branch is made")
declare("storage.fork.after", "in create_fork, after the Lance branch was made and before anybody knows of it")

_GONE_MEANWHILE = re.compile(r"Not found: .*_refs/branches/", re.IGNORECASE)
_LISTINGS = 200
_FLAT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def create_fork(handles: Handles, table: TableVersion, name: str) -> TableVersion:
    """A new line of the table that starts at exactly this version and keeps its number. Copies no data."""
    if not _FLAT_NAME.fullmatch(name) or name == "main":
        raise BadRequest(f"`{name}` cannot be the name of a fork: letters, digits, `.`, `-` and `_` only")
    failpoint("storage.fork.before")
    handles.called("fork", table.location)
    line = handles.private(table)
    try:
        with lance_errors(f"forking `{name}` from", table):
            if handles.root.lance_can_branch:
                line.create_branch(name, (table.branch, table.version), storage_options=handles.storage_options)
            else:
                clone_as_fork(handles, line, table, name)
    except TableNotFound as error:
        objects = open_objects(handles.root)
        if table.branch is None or not objects.exists(table.manifest_file):
            raise
        path = f"{table.location}/_refs/branches/{table.branch}.json"
        if objects.exists(path):
            raise
        raise _damaged_reference(path, "missing") from error
    failpoint("storage.fork.after")
    return TableVersion(table.location, name, table.version)


def delete_fork(handles: Handles, location: str, name: str) -> bool:
    """Remove a fork and its files. False when there was none; an error while another fork starts from it."""
    newest = handles.newest(location, None)
    line = handles.private(TableVersion(location, None, int(newest.version)))
    with lance_errors(f"deleting the fork `{name}` of", location):
        if name not in _while_others_delete(line.branches.list):
            return False
        _while_others_delete(lambda: _delete(line, name))
        if not handles.root.lance_can_branch:
            remove_clone(handles, location, name)
    handles.forget(location, name)
    return True


def list_forks(handles: Handles, location: str) -> list[ForkInfo]:
    """The forks of a table, sorted by name."""
    line = handles.newest(location, None)
    try:
        with lance_errors("listing the forks of", location):
            found = _while_others_delete(line.branches.list)
    except StorageError as error:
        if not is_passing(error):
            _name_damaged(handles, location)
        raise
    return [
        ForkInfo(
            name,
            branch["parent_branch"],
            int(branch["parent_version"]),
            datetime.fromtimestamp(branch["create_at"], UTC),
        )
        for name, branch in sorted(found.items())
    ]


def _name_damaged(handles: Handles, location: str) -> None:
    """Say which reference of a fork cannot be read. It holds where the fork starts, and nothing of its rows."""
    objects = open_objects(handles.root)
    for entry in objects.list(f"{location}/_refs/branches"):
        try:
            orjson.loads(objects.get(entry.path)[0])
        except ObjectNotFound:
            continue
        except ValueError as error:
            raise _damaged_reference(entry.path, "damaged") from error


def _damaged_reference(path: str, what: str) -> FileDamaged:
    return FileDamaged(
        f"the file {path} is {what}: Lance starts no fork from that line, and cannot list what starts from it. Put it "
        "back from a copy; every branch can be read, and written to where the tables are its own",
        StorageKind.PERMANENT,
        path=path,
    )


def _delete(line: LanceDataset, name: str) -> None:
    # A deletion that failed on somebody else's fork has removed ours already; `cleanup` takes what files are left.
    if name in line.branches.list():
        line.branches.delete(name)


def _while_others_delete(work: Callable[[], Result]) -> Result:
    """Run work that goes through all forks, again when one of them went meanwhile.

    Lance lists their names and then reads each, and fails on one that was deleted in between.
    """
    for _ in range(_LISTINGS):
        try:
            return work()
        except (OSError, ValueError, RuntimeError) as error:
            if not _GONE_MEANWHILE.search(str(error)):
                raise
    return work()
