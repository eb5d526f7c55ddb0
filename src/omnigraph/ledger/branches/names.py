"""Which names a branch or a tag may have, and the refusals that every public call shares.

A name must never be mistaken for a commit id, so one that has the shape of a ULID is refused. System names are refused
with the operation and the name in the message.
"""

from __future__ import annotations

import re
import unicodedata

from omnigraph.errors import BadRequest
from omnigraph.ledger.values import MAIN, SCHEMA_APPLY_LOCK
from omnigraph.storage.objects.path_segments import encode_name

SYSTEM_NAMES = frozenset({SCHEMA_APPLY_LOCK})

_FORBIDDEN = frozenset(' ~^:?*[]\\"<>|@{}\x7f')
_LONGEST_ENCODED = 200
SHORTEST_PREFIX = 4
"""So many characters of a commit id name the commit, where they name only one."""

_ULID_BEGINNING = re.compile(rf"[0-7][0-9A-HJKMNP-TV-Z]{{{SHORTEST_PREFIX - 1},24}}", re.IGNORECASE)
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE)


def is_commit_id(text: str) -> bool:
    """Whether a text has the shape of a commit id (a ULID)."""
    return _ULID.fullmatch(text) is not None


def is_commit_prefix(text: str) -> bool:
    """Whether a text may be the beginning of a commit id: some of its characters, and no other ones."""
    return _ULID_BEGINNING.fullmatch(text) is not None


def refuse_system_name(name: str, operation: str) -> None:
    """Refuse a name that belongs to the system, or is no name at all, naming the operation and the name."""
    if not isinstance(name, str):
        raise BadRequest(f"{operation}: a branch or tag is named by a text, not by {type(name).__name__}")
    if name in SYSTEM_NAMES:
        raise BadRequest(f"{operation}: `{name}` is a system name and cannot be used as a branch")


def check_branch_name(name: str, operation: str) -> None:
    """Refuse a name that a new branch cannot have."""
    refuse_system_name(name, operation)
    if name == MAIN:
        raise BadRequest(f"{operation}: `{MAIN}` always exists and cannot be made; pick another name")
    _check_name(name, operation, "branch")


def check_tag_name(name: str, operation: str) -> None:
    """Refuse a name that a new tag cannot have."""
    if name in SYSTEM_NAMES or name == MAIN:
        raise BadRequest(f"{operation}: `{name}` is the name of a branch that always exists or of the system")
    if name.isdigit():
        raise BadRequest(f"{operation}: `{name}` would be mistaken for a manifest version; use a name with a letter")
    _check_name(name, operation, "tag")


def _check_name(name: str, operation: str, what: str) -> None:
    reason = _fault(name)
    if reason:
        raise BadRequest(f"{operation}: `{name}` is not a valid {what} name: {reason}")


def _fault(name: str) -> str | None:
    if not name:
        return "it is empty"
    if bad := sorted({c for c in name if c in _FORBIDDEN or unicodedata.category(c)[0] in "CZ"}):
        return f"it holds {', '.join(ascii(c) for c in bad)}"
    if name != unicodedata.normalize("NFC", name):
        return "it is not in Unicode's composed form (NFC)"
    segments = name.split("/")
    if "" in segments:
        return "`/` stands between two parts, neither first, nor last, nor twice"
    if any(segment in (".", "..") or segment.endswith(".lock") for segment in segments):
        return "no part may be `.` or `..` or end with `.lock`"
    if name.startswith("-"):
        return "it starts with `-`"
    if is_commit_id(name):
        return "it would be mistaken for a commit id"
    if len(encode_name(name)) > _LONGEST_ENCODED:
        return (
            f"it is too long (at most {_LONGEST_ENCODED} characters; those that are not letters or digits count more)"
        )
    return None
