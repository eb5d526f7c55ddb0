"""The plain values that the storage layer takes and gives: table versions, staged writes, what history holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


_LARGEST_VERSION = 2**64 - 1


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of one table: `location` is below the graph's root, `branch` is a Lance branch (None: main line)."""

    location: str
    branch: str | None
    version: int

    def at(self, version: int) -> TableVersion:
        """Another version of the same line."""
        return replace(self, version=version)

    @property
    def manifest_file(self) -> str:
        """The file below the graph's root that describes this version."""
        line = f"{self.location}/tree/{self.branch}" if self.branch else self.location
        return f"{line}/_versions/{manifest_name(self.version)}"

    def __str__(self) -> str:
        line = f"@{self.branch}" if self.branch else ""
        return f"{self.location}{line} version {self.version}"


def manifest_name(version: int) -> str:
    """How Lance names the file that describes a version: counted down, so that the newest sorts first."""
    return f"{_LARGEST_VERSION - version:020d}.manifest"


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """Files on disk that no version of the table refers to yet, and the transaction that would make it so.

    `rows_*` count what the commit will add, update and delete. `new_files` are paths relative to the graph's root, for
    `abandon`; `new_vectors` are the deletion vectors beside them, None when the operation does not tell all that it
    adds. `transaction` is Lance's and is used once.
    """

    location: str
    branch: str | None
    base_version: int
    transaction: Any = field(repr=False)
    rows_added: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    new_files: tuple[str, ...] = field(default=(), repr=False)
    new_vectors: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def base(self) -> TableVersion:
        """The version that the write was prepared on."""
        return TableVersion(self.location, self.branch, self.base_version)

    @property
    def transaction_uuid(self) -> str:
        """The id under which the commit will be found in the table's history."""
        return str(self.transaction.uuid)

    @property
    def is_empty(self) -> bool:
        """Whether the write changes no row."""
        return not (self.rows_added or self.rows_updated or self.rows_deleted)


@dataclass(frozen=True, slots=True)
class FragmentInfo:
    """One fragment of a table version."""

    id: int
    rows: int
    physical_rows: int
    deletions: int


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """What made one version of a table.

    `kind` is Lance's name of the operation, or `Unreadable`. `changes_content` is None when nobody can tell.
    """

    version: int
    uuid: str | None
    kind: str
    properties: dict[str, str]
    changes_content: bool | None


@dataclass(frozen=True, slots=True)
class ForkInfo:
    """A Lance branch of one table: where it starts and when it was made."""

    name: str
    parent_branch: str | None
    parent_version: int
    created: datetime


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """A version of one line of a table that still exists."""

    version: int
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of one table version. `uncovered_fragments` are scanned instead of looked up."""

    name: str
    column: str
    kind: str
    covered_fragments: tuple[int, ...]
    uncovered_fragments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ordering:
    """One column to order by."""

    column: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class TableDelta:
    """What changed between two versions of one line.

    `inserted` and `updated` are readers of whole rows with Lance's version columns; `deleted_row_ids` are stable row
    ids. A row that was deleted and inserted again shows in both.
    """

    inserted: pa.RecordBatchReader
    updated: pa.RecordBatchReader
    deleted_row_ids: pa.RecordBatchReader
