"""Every error a user can meet: one typed family, one table from kind to HTTP status, code and exit code.

Each class has a stable, machine-readable `kind`. A message says what happened, to what, and what to do next.
Errors of libraries are wrapped at the edge of the package that calls the library, in our own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from omnigraph.diagnostics import UNNAMED, Diagnostic


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one kind of error shows at the surfaces."""

    http_status: int
    code: str
    exit_code: int


OUTCOMES: Mapping[str, Outcome] = {
    "parse": Outcome(400, "bad_request", 1),
    "type": Outcome(400, "bad_request", 1),
    "bad_request": Outcome(400, "bad_request", 1),
    "validation_failed": Outcome(400, "bad_request", 1),
    "unauthorized": Outcome(401, "unauthorized", 1),
    "policy_denied": Outcome(403, "forbidden", 1),
    "not_found": Outcome(404, "not_found", 1),
    "method_not_allowed": Outcome(405, "method_not_allowed", 1),
    "conflict": Outcome(409, "conflict", 3),
    "contention": Outcome(409, "conflict", 3),
    "merge_conflicts": Outcome(409, "conflict", 3),
    "key_conflict": Outcome(409, "conflict", 3),
    "precondition_failed": Outcome(412, "precondition_failed", 4),
    "resource_limit": Outcome(413, "too_large", 1),
    "too_many_requests": Outcome(429, "too_many_requests", 1),
    "storage_transient": Outcome(503, "unavailable", 5),
    "recovery_required": Outcome(503, "recovery_required", 5),
    "busy": Outcome(503, "unavailable", 5),
    "unavailable": Outcome(503, "unavailable", 5),
    "in_doubt": Outcome(500, "in_doubt", 5),
    "cancelled": Outcome(500, "cancelled", 1),
    "timeout": Outcome(504, "timeout", 1),
    "history_gap": Outcome(404, "not_found", 1),
    "stale_cursor": Outcome(400, "bad_request", 1),
    "stale_checkpoint": Outcome(409, "conflict", 3),
    "embedding_refused": Outcome(400, "bad_request", 1),
    "embedding_unavailable": Outcome(503, "unavailable", 5),
    "storage": Outcome(500, "internal", 1),
    "internal": Outcome(500, "internal", 1),
}


def printable(text: str) -> str:
    """Text that any stream and any JSON writer takes: half of a surrogate pair is shown by its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class OmniGraphError(Exception):
    """The base of the family. `details` is plain JSON data for programs."""

    kind: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.details: dict[str, Any] = details

    def __reduce__(self) -> tuple[Any, ...]:
        # By what it holds: the constructors of the family take different arguments.
        return _restored, (type(self), self.args, dict(self.__dict__))

    @property
    def outcome(self) -> Outcome:
        """Status, code and exit code of this error."""
        return OUTCOMES[self.kind]

    def to_json(self) -> dict[str, Any]:
        """The body that the CLI's `--json` and the server print."""
        return {"error": self.message, "code": self.outcome.code, "kind": self.kind, **self.details}


def _restored(kind: type[OmniGraphError], args: tuple[Any, ...], held: dict[str, Any]) -> OmniGraphError:
    """An error that was pickled."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(held)
    return error


class BadRequest(OmniGraphError):
    """The call itself makes no sense: a wrong option, an invalid name, an ill-typed parameter."""

    kind = "bad_request"


class NotFound(OmniGraphError):
    """The named graph, branch, commit, type, query or entity does not exist."""

    kind = "not_found"


class BranchNotFound(NotFound):
    """There is no branch of that name, or it was deleted. `branch` in the details names it."""


class Conflict(OmniGraphError):
    """Somebody else's write came first. `expected_version_mismatch` names the table when one moved."""

    kind = "conflict"
    retryable = True


@dataclass(frozen=True, slots=True)
class ExpectedVersionMismatch:
    """A table that moved under a write: the version it was prepared on, and the one that is published now."""

    table_key: str
    expected: int | None
    actual: int | None


class TableMoved(Conflict):
    """A table was published by another writer after this write had read it.

    Whether data of the table changed is told by the history, which takes longer to read than a small write takes: it
    may be given as a function, which is called when somebody asks.
    """

    def __init__(
        self, message: str, mismatch: ExpectedVersionMismatch, *, data_changed: bool | Callable[[], bool] = True
    ) -> None:
        super().__init__(
            message,
            manifest_conflict={
                "table_key": mismatch.table_key,
                "expected": mismatch.expected,
                "actual": mismatch.actual,
            },
        )
        self.mismatch = mismatch
        self._data_changed = data_changed

    @property
    def data_changed(self) -> bool:
        """Whether one of the commits that moved the table changed data; true when the history cannot be read."""
        if not isinstance(self._data_changed, bool):
            try:
                self._data_changed = self._data_changed()
            except OmniGraphError:
                self._data_changed = True
        return self._data_changed

    def __reduce__(self) -> tuple[Any, ...]:
        # What it would ask stays in this process.
        self._data_changed = self.data_changed
        return super().__reduce__()


class RowLevelCasContention(Conflict):
    """The publisher lost its race more often than its retry budget allows."""

    kind = "contention"


class MergeConflicts(OmniGraphError):
    """Both sides of a merge changed the same rows in different ways. `conflicts` lists all of them."""

    kind = "merge_conflicts"

    def __init__(self, message: str, conflicts: Sequence[Any], **details: Any) -> None:
        super().__init__(message, **details)
        self.conflicts = tuple(conflicts)


class PreconditionFailed(OmniGraphError):
    """`if_commit` no longer holds: data changed on the branch since that commit."""

    kind = "precondition_failed"


class RecoveryRequired(OmniGraphError):
    """An unfinished write blocks this one. `operation_id` names it when it is known."""

    kind = "recovery_required"
    retryable = True

    def __init__(self, message: str, operation_id: str | None = None, **details: Any) -> None:
        super().__init__(message, operation_id=operation_id, **details)
        self.operation_id = operation_id


class WriteInDoubt(OmniGraphError):
    """Whether this write stands cannot be told now. Look before writing again; `operation_id` says for what."""

    kind = "in_doubt"

    def __init__(self, message: str, operation_id: str = "", **details: Any) -> None:
        super().__init__(message, operation_id=operation_id, **details)
        self.operation_id = operation_id


class Busy(OmniGraphError):
    """Somebody alive holds what this call needs (a lease, the schema-apply lock). Try again shortly."""

    kind = "busy"
    retryable = True


class LeaseLost(Conflict):
    """This process was paused past its lease and somebody else took over: its work must not go on."""


class PolicyDenied(OmniGraphError):
    """The policy does not allow this actor to do this."""

    kind = "policy_denied"


class Unauthorized(OmniGraphError):
    """The server does not know who asks: no token, or one that is not valid."""

    kind = "unauthorized"


class MethodNotAllowed(OmniGraphError):
    """The server has this path, and not for this method."""

    kind = "method_not_allowed"


class TooManyRequests(OmniGraphError):
    """This actor has as much under way as one actor may have. Try again when some of it is done."""

    kind = "too_many_requests"
    retryable = True


class Unavailable(OmniGraphError):
    """The server, or this graph of it, cannot be reached or is not served now."""

    kind = "unavailable"
    retryable = True


class ResourceLimit(OmniGraphError):
    """A bound on memory, rows, nesting or length was reached."""

    kind = "resource_limit"


class Cancelled(OmniGraphError):
    """The caller cancelled the work; nothing was published."""

    kind = "cancelled"


class QueryTimeout(OmniGraphError):
    """A query did not finish within its `timeout`; nothing was changed."""

    kind = "timeout"


class HistoryGap(OmniGraphError):
    """Part of the history that was asked for has been removed by `cleanup`."""

    kind = "history_gap"


class StaleCursor(OmniGraphError):
    """A change-feed cursor that belongs to another graph, branch incarnation or filter."""

    kind = "stale_cursor"


class StaleCheckpoint(OmniGraphError):
    """A stream into a graph came with a batch that is not the next one there: its checkpoint belongs elsewhere."""

    kind = "stale_checkpoint"


class SparkUnavailable(OmniGraphError):
    """No Spark session can be had here: no Java, one too old, or a kind of session that the jobs cannot use."""

    kind = "bad_request"


class SparkJobFailed(OmniGraphError):
    """A Spark job died of something that is not the data's fault. Nothing was published."""


class EmbeddingRefused(OmniGraphError):
    """The embedding provider refused the texts, or answered what can be no vector. Asking again gives the same."""

    kind = "embedding_refused"


class EmbeddingUnavailable(OmniGraphError):
    """The embedding provider gave no vectors in time. Nothing was written."""

    kind = "embedding_unavailable"
    retryable = True


class InternalError(OmniGraphError):
    """A broken invariant of our own: please report it. Nothing was published."""


class StorageKind(StrEnum):
    """What sort of trouble the store below reported."""

    TRANSIENT = "transient"
    CONFIGURATION = "configuration"
    NOT_FOUND = "not_found"
    PRECONDITION = "precondition"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


class StorageError(OmniGraphError):
    """The store below failed. `storage_kind` says whether trying again can help."""

    kind = "storage"

    def __init__(self, message: str, storage_kind: StorageKind = StorageKind.UNKNOWN, **details: Any) -> None:
        super().__init__(message, storage_kind=storage_kind.value, **details)
        self.storage_kind = storage_kind

    @property
    def outcome(self) -> Outcome:
        if self.storage_kind is StorageKind.TRANSIENT:
            return OUTCOMES["storage_transient"]
        if self.storage_kind is StorageKind.NOT_FOUND:
            return OUTCOMES["not_found"]
        return OUTCOMES["storage"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule of the data. `source` and `record` say where in the input, when there is one."""

    kind: str
    table_key: str
    message: str
    row_id: str | None = None
    property: str | None = None
    source: str | None = None
    record: int | None = None

    def __post_init__(self) -> None:
        # Names and values come from the input, and may hold what is no text.
        for name in ("message", "row_id", "property", "source"):
            value = getattr(self, name)
            if value is not None and not value.isascii():
                object.__setattr__(self, name, printable(value))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, keys without a value left out."""
        pairs = {
            "kind": self.kind,
            "table_key": self.table_key,
            "row_id": self.row_id,
            "property": self.property,
            "source": self.source,
            "record": self.record,
            "message": self.message,
        }
        return {key: value for key, value in pairs.items() if value is not None}


class ValidationFailed(OmniGraphError):
    """The data breaks rules of the schema. Nothing was published.

    `violations` holds the first ten of each kind (per table), `counts` how many there were of each kind.
    """

    kind = "validation_failed"

    def __init__(self, message: str, violations: Sequence[Violation], counts: Mapping[str, int] | None = None) -> None:
        self.violations = tuple(violations)
        self.counts = {str(kind): n for kind, n in counts.items()} if counts is not None else _count(self.violations)
        super().__init__(message, violations=[v.to_json() for v in self.violations], violation_counts=self.counts)


class KeyConflict(ValidationFailed):
    """An id exists that must be new, and no other rule is broken. `violations` and `counts` say which and how many.

    Another key, or another mode, is what helps then; whoever repairs data may catch it as `ValidationFailed`.
    """

    kind = "key_conflict"


def _count(violations: Sequence[Violation]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for violation in violations:
        counts[str(violation.kind)] = counts.get(violation.kind, 0) + 1
    return counts


class LanguageError(OmniGraphError):
    """A schema or query text that does not hold. Carries every finding, not only the first."""

    kind = "parse"

    def __init__(self, diagnostics: Sequence[Diagnostic], source: str, filename: str = UNNAMED) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        self.filename = filename
        super().__init__(
            "\n\n".join(d.render(source, filename) for d in self.diagnostics),
            diagnostics=[d.to_json() for d in self.diagnostics],
        )

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes found, in order."""
        return tuple(d.code for d in self.diagnostics)


class SchemaError(LanguageError):
    """A `.pg` text that does not parse or does not make a valid catalog."""


class QueryParseError(LanguageError):
    """A `.gq` text that does not parse."""


class QueryTypeError(LanguageError):
    """A `.gq` text that parses and does not type-check against the schema."""

    kind = "type"
