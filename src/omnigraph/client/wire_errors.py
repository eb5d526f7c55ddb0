"""Errors that came over the wire, as the errors that they were: the same classes, with the same details."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from omnigraph import errors
from omnigraph.diagnostics import Diagnostic, Severity, Span
from omnigraph.errors import OmniGraphError, StorageKind, Violation

_CHOSEN: dict[str, type[OmniGraphError]] = {
    "bad_request": errors.BadRequest,
    "not_found": errors.NotFound,
    "conflict": errors.Conflict,
    "parse": errors.QueryParseError,
    "internal": errors.InternalError,
}
"""Where several classes have one kind, the one that says no more than the kind."""


def _classes() -> dict[str, type[OmniGraphError]]:
    found = {
        kind.kind: kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, OmniGraphError) and kind is not OmniGraphError
    }
    return {**found, **_CHOSEN}


_OF_OTHERS: dict[int, type[OmniGraphError]] = {
    401: errors.Unauthorized,
    403: errors.PolicyDenied,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    413: errors.ResourceLimit,
    429: errors.TooManyRequests,
}
"""What it means when somebody on the way, such as a proxy, refuses with a status and no more."""


def foreign_answer(status: int, kind: str) -> OmniGraphError:
    """What is told of an answer that no server of graphs gives."""
    told = (
        f"what is at this address answered with status {status}, {kind or 'no content type'}, and not as a server of "
        "graphs does; check the address"
    )
    return errors.Unavailable(told, status=status)


def error_from(body: Mapping[str, Any], status: int) -> OmniGraphError:
    """The error of a response."""
    if "kind" not in body:
        told = f"this was refused with status {status}, by something before a server of graphs; check the address"
        return _OF_OTHERS.get(status, errors.BadRequest if status < 500 else errors.Unavailable)(told, status=status)
    message = str(body.get("error") or f"the server answered with status {status}")
    kind = _classes().get(str(body["kind"]), errors.InternalError)
    details = {key: value for key, value in body.items() if key not in ("error", "code", "kind")}
    if kind is not errors.MergeConflicts and not details.get("merge_conflicts"):
        details.pop("merge_conflicts", None)
    error = kind.__new__(kind, message)
    OmniGraphError.__init__(error, message, **details)
    _complete(error, details)
    return error


def _complete(error: OmniGraphError, details: Mapping[str, Any]) -> None:
    """What the constructors of some classes would have set."""
    if isinstance(error, errors.ValidationFailed):
        error.violations = tuple(Violation(**violation) for violation in details.get("violations", ()))
        error.counts = dict(details.get("violation_counts", {}))
    if isinstance(error, errors.MergeConflicts):
        from omnigraph.client.wire_values import conflict

        error.conflicts = tuple(conflict(found) for found in details.get("merge_conflicts", ()))
    if isinstance(error, errors.RecoveryRequired | errors.WriteInDoubt):
        error.operation_id = details.get("operation_id") or ""
    if isinstance(error, errors.StorageError):
        error.storage_kind = StorageKind(details.get("storage_kind", "unknown"))
    if isinstance(error, errors.LanguageError):
        error.source, error.filename = "", "<query>"
        error.diagnostics = tuple(_diagnostic(found) for found in details.get("diagnostics", ()))


def _diagnostic(found: Mapping[str, Any]) -> Diagnostic:
    span = Span(found["start"], found["end"], found["line"], found["column"])
    return Diagnostic(found["code"], found["message"], span, Severity(found["severity"]), found.get("hint"))
