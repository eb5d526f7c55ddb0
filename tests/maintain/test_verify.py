"""Verify finds each kind of damage, and says where it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.config import override
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.history.log_rows import ID, LOG, SCHEMA
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import Finding, Rule, VerifyReport, lasting, verify
from tests.faults.harness import run_killed
from tests.maintain.graphs import KNOWS, PERSON, interrupted, knows, put


@pytest.fixture
def filled(store: GraphStore) -> GraphStore:
    """People and edges on two branches."""
    put(store, ada=1, bob=2, cid=3)
    knows(store, "ada", "bob")
    create_branch(store, "review")
    put(store, "review", dan=4)
    return store


def looked_at(store: GraphStore) -> VerifyReport:
    with open_store(store.uri, read_only=True) as reader:
        return verify(reader)


def force(store: GraphStore, table_key: str, rows: list[dict[str, object]], delete: list[str] | None = None) -> None:
    """Commit and publish rows past every check, as damage that somebody did with other tools."""
    line = table_of(store.snapshot().pin(table_key))
    if delete:
        staged = store.tables.stage_delete(line, delete)
    else:
        staged = store.tables.stage_append(line, pa.Table.from_pylist(rows, schema=store.tables.schema(line)))
    store.tables.commit_staged(staged, "somebody")
    repair(store, confirm=True, force=True)


def test_a_sound_graph_has_no_findings(filled: GraphStore) -> None:
    report = looked_at(filled)
    assert report.ok, report.findings
    assert (report.exit_code, report.branches, report.rows) == (0, 2, 3 + 1 + 4)
    with override(cleanup_grace=0.0):
        assert looked_at(filled).ok


def test_what_a_writer_at_work_shows_for_a_moment_is_no_finding() -> None:
    lasts = Finding(Rule.DRIFT, "version 3 is published and 4 is there", "main", PERSON)
    looks = iter([[lasts, Finding(Rule.SIDECARS, "the write A")], [Finding(Rule.SIDECARS, "the write B"), lasts]])
    assert lasting(lambda: next(looks, [lasts])) == [lasts]
    once = iter([[lasts], []])
    assert lasting(lambda: next(once)) == []


@pytest.mark.parametrize("at", ["write.published", "publish.before", "publish.after"])
def test_a_write_that_takes_long_is_told_with_its_writer(filled: GraphStore, tmp_path: Path, at: str) -> None:
    reports: list[VerifyReport] = []
    interrupted(at, tmp_path / "gate", lambda: put(filled, eve=5), lambda: reports.append(looked_at(filled)))
    assert [finding.rule for finding in reports[0].findings if "a writer is at work" not in finding.message] == []
    assert {finding.branch for finding in reports[0].findings} == {"main"}
    assert looked_at(filled).ok


def only(report: VerifyReport, rule: Rule) -> list[tuple[str | None, str | None, str | None]]:
    assert report.exit_code == 1
    assert {finding.rule for finding in report.findings} == {rule}, report.findings
    return [(finding.branch, finding.table_key, finding.row_id) for finding in report.findings]


def test_an_id_that_is_there_twice(filled: GraphStore) -> None:
    force(filled, PERSON, [{"id": "ada", "name": "ada", "age": 9}])
    assert only(looked_at(filled), Rule.UNIQUE_IDS) == [("main", PERSON, "ada")]


def test_an_edge_without_its_end(filled: GraphStore) -> None:
    force(filled, PERSON, [], delete=["bob"])
    (found,) = only(looked_at(filled), Rule.ENDPOINTS)
    assert found[:2] == ("main", KNOWS)
    assert found[2] is not None


def test_rows_that_are_gone_below_their_pin(filled: GraphStore) -> None:
    pin = filled.snapshot().pin(PERSON)
    data = next(Path(filled.uri, pin.location, "data").glob("*.lance"))
    data.write_bytes(b"")
    found = {finding.rule for finding in looked_at(filled).findings}
    assert Rule.PIN_OPENS in found


def test_a_version_that_is_gone(filled: GraphStore) -> None:
    pin = filled.snapshot(branch="review").pin(PERSON)
    filled.objects.delete_prefix(f"{pin.location}/tree/{pin.lance_branch}/_versions")
    report = looked_at(filled)
    assert ("review", PERSON) in {(f.branch, f.table_key) for f in report.findings if f.rule is Rule.PIN_OPENS}


def test_a_wrong_row_count(filled: GraphStore) -> None:
    from dataclasses import replace

    from omnigraph.ledger.manifest.publish import Publication, publish
    from tests.ledger.graphs import draft

    base = filled.snapshot()
    wrong = replace(base.pin(PERSON), row_count=99)
    publish(filled, base.branch, Publication(draft(base), updates=(wrong,)))
    assert only(looked_at(filled), Rule.ROW_COUNT) == [("main", PERSON, None)]


def test_drift(filled: GraphStore) -> None:
    line = table_of(filled.snapshot().pin(PERSON))
    filled.tables.commit_staged(filled.tables.stage_delete(line, ["cid"]), "somebody")
    assert only(looked_at(filled), Rule.DRIFT) == [("main", PERSON, None)]


def test_an_unfinished_write(filled: GraphStore) -> None:
    run_killed(write_and_die, filled.uri, at="write.sidecar_put")
    with override(cleanup_grace=3600.0):
        assert only(looked_at(filled), Rule.SIDECARS) == [("main", None, None)]


def write_and_die(uri: str) -> None:
    """A write, to be killed."""
    put(open_store(uri), zoe=1)


def rewrite_log(store: GraphStore, without: str) -> None:
    head = store.tables.head(LOG)
    rows = store.tables.scan_table(head).cast(SCHEMA)
    kept = rows.filter(pa.compute.not_equal(rows[ID], without))
    store.tables.commit_staged(store.tables.stage_overwrite(head, kept), "somebody")


def test_a_commit_without_its_parent_and_a_manifest_version_without_its_commit(filled: GraphStore) -> None:
    parent = filled.snapshot().head.parent_commit_id
    assert parent is not None
    rewrite_log(filled, parent)
    found = {finding.rule for finding in looked_at(filled).findings}
    assert found == {Rule.LOGGED, Rule.PARENTS}


def test_a_tag_without_its_commit(filled: GraphStore) -> None:
    filled.refs.create_tag(TagRef("lost", "01JZ0000000000000000000000", None, 0))
    report = looked_at(filled)
    assert Rule.TAGS in {finding.rule for finding in report.findings}


def test_unreferenced_files_and_forks_once_they_are_old(filled: GraphStore) -> None:
    line = table_of(filled.snapshot().pin(PERSON))
    filled.tables.stage_append(line, filled.tables.scan_table(line))
    filled.tables.create_fork(line, "f-orphan")
    filled.tables.create("nodes/never", filled.tables.schema(line))
    assert looked_at(filled).ok
    with override(cleanup_grace=0.0):
        report = looked_at(filled)
    assert len(report.findings) == 3
    assert {finding.rule for finding in report.findings} == {Rule.LEFTOVERS}
