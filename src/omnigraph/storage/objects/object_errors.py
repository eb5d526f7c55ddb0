"""What can go wrong with an object, in our words: missing, there already, changed meanwhile, not allowed, broken."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from obstore import exceptions as obstore_errors

from omnigraph.errors import OmniGraphError, StorageError, StorageKind


class ObjectNotFound(StorageError):
    """There is no object at that path."""


class ObjectExists(StorageError):
    """`put_if_absent` met an object."""


class LostPrecondition(StorageError):
    """`put_if_match` met another object than the one that was read, or none."""


@contextmanager
def storage_errors(doing: str, what: str) -> Iterator[None]:
    """Turn errors of the object-store library and the operating system into ours."""
    try:
        yield
    except OmniGraphError:
        raise
    except Exception as error:
        _raise_ours(doing, what, error)


def _raise_ours(doing: str, what: str, error: Exception) -> NoReturn:
    reason = first_line(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError) or "os error 20" in reason:
        raise ObjectNotFound(f"{what} does not exist", StorageKind.NOT_FOUND) from error
    if isinstance(error, obstore_errors.AlreadyExistsError | FileExistsError):
        raise ObjectExists(f"{what} exists already", StorageKind.PRECONDITION) from error
    if isinstance(error, obstore_errors.PreconditionError):
        raise LostPrecondition(
            f"{what} was changed by somebody else; read it again and retry", StorageKind.PRECONDITION
        ) from error
    if is_permission_error(error):
        raise StorageError(
            f"{doing} {what} is not allowed: check the permissions of the store or the credentials in AWS_* ({reason})",
            StorageKind.CONFIGURATION,
        ) from error
    if isinstance(error, obstore_errors.UnknownConfigurationKeyError | obstore_errors.NotSupportedError):
        raise StorageError(
            f"{doing} {what}: the store is not configured for this ({reason})", StorageKind.CONFIGURATION
        ) from error
    raise StorageError(f"{doing} {what} failed: {reason}{advice(reason)}", kind_of(reason)) from error


def is_permission_error(error: Exception) -> bool:
    """Whether the store said that the caller may not do this."""
    if isinstance(error, PermissionError | obstore_errors.PermissionDeniedError | obstore_errors.UnauthenticatedError):
        return True
    text = str(error).lower()
    return "os error 13" in text or "os error 1)" in text or "permission denied" in text or "accessdenied" in text


_TRANSIENT = re.compile(
    r"timed? ?out|connection|error sending request|slow ?down|throttl|too many requests|503|internal ?error"
    r"|(os error |errno )(4|11|23|24|110|111|104|32)\b",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(
    r"no ?such ?bucket|invalid ?access ?key|signature ?does ?not|credential|unable to parse|(os error |errno )30\b",
    re.IGNORECASE,
)
_PERMANENT = re.compile(r"(os error |errno )(28|122|27|36|5|40|21)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:os error |errno )(\d+)", re.IGNORECASE)
_FULL = ". The disk is full or over its quota: free some space and try again; nothing else is needed"
_DESCRIPTORS = ". The process may open no more files: raise its limit (`ulimit -n`) or close some, and try again"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: _DESCRIPTORS,
    errno.EIO: ". The disk reports an error: look at the system's log, and run `omnigraph verify --deep` afterwards",
}


def kind_of(reason: str) -> StorageKind:
    """What sort of trouble a library's text speaks of."""
    if _CONFIGURATION.search(reason):
        return StorageKind.CONFIGURATION
    if _TRANSIENT.search(reason):
        return StorageKind.TRANSIENT
    if _PERMANENT.search(reason):
        return StorageKind.PERMANENT
    return StorageKind.UNKNOWN


def is_passing(error: StorageError) -> bool:
    """Whether the store is in trouble for a while, or not set up: what it keeps may be sound."""
    return error.storage_kind in (StorageKind.TRANSIENT, StorageKind.CONFIGURATION)


def advice(reason: str) -> str:
    """What to do about trouble that the operating system named by its number; nothing when it did not."""
    found = _NUMBERED.search(reason)
    return _ADVICE.get(int(found[1]), "") if found else ""


def first_line(error: BaseException) -> str:
    """The library's own words without its debug dump and source positions."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r",? ?/[^ ,]*\.rs:\d+:\d+", "", line)[:500]
