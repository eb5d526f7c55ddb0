"""What operators get over the wire, as the values that a graph opened here would give."""

from __future__ import annotations

from omnigraph.client.wire_values import Json, maybe_commit
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.recovery.audit import RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.sidecars import RecoveredTable
from omnigraph.ledger.values import WriterKind
from omnigraph.maintain.checksums import FileReport
from omnigraph.maintain.cleanup import CleanedTable, CleanupResult
from omnigraph.maintain.optimize.optimize import MaintenanceResult, TableReport
from omnigraph.maintain.verify import Finding, Rule, VerifyReport


def tag(found: Json) -> TagRef:
    """A tag."""
    return TagRef(**found)


def maintenance_result(found: Json) -> MaintenanceResult:
    """What an optimize or an index build did."""
    tables = tuple(
        TableReport(
            **{
                **one,
                "indexes_built": tuple(one["indexes_built"]),
                "pending_indexes": tuple(one["pending_indexes"]),
            }
        )
        for one in found["tables"]
    )
    return MaintenanceResult(found["branch"], tables, maybe_commit(found["commit"]), found["engine"])


def cleanup_result(found: Json) -> CleanupResult:
    """What a cleanup did, or would do."""
    tables = tuple(CleanedTable(**one) for one in found["tables"])
    return CleanupResult(found["preview"], found["commits_kept"], tables)


def verify_report(found: Json) -> VerifyReport:
    """What was read and what was found."""
    findings = tuple(Finding(**{**one, "rule": Rule(one["rule"])}) for one in found["findings"])
    files = None
    if "files_checked" in found:
        files = FileReport(found["files_checked"], found["files_without_checksum"], ())
    counts = (found["branches"], found["tables"], found["rows"], found["commits"])
    return VerifyReport(*counts, findings, files)


def recovery(found: Json) -> RecoveryRecord:
    """One unfinished write that was resolved."""
    return RecoveryRecord(
        **{
            **found,
            "kind": RecoveryKind(found["kind"]),
            "writer_kind": WriterKind(found["writer_kind"]),
            "tables": tuple(RecoveredTable(**one) for one in found["tables"]),
        }
    )
