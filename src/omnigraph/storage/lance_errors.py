"""Lance's errors in our words. Lance raises `OSError`, `ValueError` and `RuntimeError` for much the same things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from lance.commit import CommitConflictError

from omnigraph.errors import Conflict, OmniGraphError, StorageError, StorageKind
from omnigraph.storage.objects.object_errors import advice, first_line, is_permission_error, kind_of
from omnigraph.storage.values import TableVersion

_FILE = re.compile(r"(?:nodes|edges|__manifest|_graph_commit\w*\.lance)/\S*(?:data|_deletions|_indices)/[^\s,:)]+")
"""A file of a version, in the words of Lance: below the table and no manifest."""


class TableNotFound(StorageError):
    """The table, its branch or its version does not exist (any more)."""


class TableExists(StorageError):
    """`create` met a table."""


class FileDamaged(StorageError):
    """A file of a table is not what was published. `path` in the details names it."""


@contextmanager
def lance_errors(doing: str, what: object) -> Iterator[None]:
    """Turn what Lance raises into our family, with what was being done and to what."""
    try:
        yield
    except OmniGraphError:
        raise
    except Exception as error:
        raise_ours(doing, what, error)
    except BaseException as error:
        # A panic in Lance's native code is no `Exception`; it must not pass for a request to stop the program.
        if type(error).__name__ != "PanicException":
            raise
        raise_ours(doing, what, RuntimeError(first_line(error)))


def raise_ours(doing: str, what: object, error: Exception) -> NoReturn:
    """Raise our error for one of Lance's."""
    reason = first_line(error)
    lowered = reason.lower()
    if isinstance(error, CommitConflictError):
        raise Conflict(
            f"{what} was changed by another writer meanwhile; nothing was committed. Prepare the write again"
        ) from error
    if "already exists" in lowered:
        raise TableExists(f"there is a table at {what} already", StorageKind.PRECONDITION) from error
    if is_permission_error(error):
        raise StorageError(
            f"{doing} {what} is not allowed: check the permissions of the store or the credentials in AWS_* ({reason})",
            StorageKind.CONFIGURATION,
        ) from error
    if any(text in lowered for text in ("not found", "does not exist", "no such file", "not a directory")):
        missing = _FILE.search(reason)
        if missing:
            raise FileDamaged(
                f"{doing} {what}: the file {missing[0]} is missing, which is part of it. Put it back from a copy; "
                "other tables, and versions without it, can be read, and `omnigraph salvage` takes out what can be",
                StorageKind.PERMANENT,
                path=missing[0],
            ) from error
        if isinstance(what, TableVersion):
            raise TableNotFound(
                f"{doing} {what}: its file {what.manifest_file} is not there. If an older state was asked for, cleanup "
                "has removed it, or its branch was deleted: read a newer one. If a branch shows it now, the store has "
                "lost it: `omnigraph verify` names all that is missing, to be put back from a copy, and `omnigraph "
                "salvage` takes out what can be read",
                StorageKind.NOT_FOUND,
                path=what.manifest_file,
            ) from error
        raise TableNotFound(f"{doing} {what}: it does not exist ({reason})", StorageKind.NOT_FOUND) from error
    raise StorageError(f"{doing} {what} failed: {reason}{advice(reason)}", kind_of(reason)) from error
