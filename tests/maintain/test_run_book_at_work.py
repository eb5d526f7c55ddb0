"""The first table of the run-book, row by row: what one sees at work, what the page says to do, and that it helps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.config import override
from omnigraph.errors import Busy, HistoryGap, PreconditionFailed, RecoveryRequired, StorageError
from omnigraph.graph import Graph
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.cleanup import CleanupResult, cleanup
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import Rule, verify
from omnigraph.write.load.load import load
from tests.faults.harness import run_killed
from tests.maintain.graphs import PERSON, SCHEMA, knows, people, put
from tests.maintain.test_repair import deleted
from tests.maintain.test_run_book import PAGE, rows_of, sound
from tests.maintain.test_verify import force, looked_at, rewrite_log


def write_both(uri: str) -> None:
    """A write of two tables, to be killed between them."""
    rows: list[dict[str, Any]] = [{"type": "Person", "data": {"name": "zoe", "age": 1}}]
    load(open_store(uri), [*rows, {"edge": "Knows", "from": "zoe", "to": "ada"}], mode="merge")


def died_between_tables(store: GraphStore) -> None:
    run_killed(write_both, store.uri, at="write.table_committed")
    with pytest.raises(RecoveryRequired, match="Reopen the graph for writing"):
        knows(store, "bob", "ada")
    with open_store(store.uri) as reopened:
        assert [row.kind.value for row in reopened.audit.list()] == ["RolledBack"]


def changed_outside(store: GraphStore) -> None:
    deleted(store, "bob")
    with pytest.raises(RecoveryRequired, match="Run `omnigraph repair`"):
        put(store, eve=5)
    assert repair(store).tables[0].action == "reported"
    assert repair(store, confirm=True, force=True, restore=True).exit_code == 0
    assert "bob" in people(store)


def published_is_missing(store: GraphStore) -> None:
    create_branch(store, "review")
    put(store, "review", dan=4)
    copy = shutil.copytree(store.uri, f"{store.uri}-copy")
    pin = store.snapshot().pin(PERSON)
    min(Path(store.uri, pin.location, "_versions").glob("*.manifest")).unlink()
    with pytest.raises(StorageError, match="published data is missing") as caught:
        put(store, eve=5)
    assert caught.value.details["path"] == table_of(pin).manifest_file
    with open_store(store.uri) as opened:
        with pytest.raises(StorageError, match="a branch shows it now"):
            put(opened, eve=5)
        named = {(finding.branch, finding.table_key) for finding in verify(opened).findings}
        assert ("main", PERSON) in named
        assert people(opened, branch="review")["dan"] == 4
        put(opened, "review", eve=5)
    shutil.rmtree(store.uri)
    shutil.copytree(copy, store.uri)


def held_by_another(store: GraphStore) -> None:
    held = store.leases.acquire(f"branch-{store.branch('main').incarnation}", "a writer of branch `main`")
    impatient = override(lease_wait_seconds=0.1, queue_wait_seconds=0.1)
    with held, impatient, pytest.raises(Busy, match=r"process \d+ on"):
        put(store, eve=5)
    put(store, eve=5)


def somebody_was_first(store: GraphStore) -> None:
    before = store.snapshot().head.graph_commit_id
    put(store, eve=5)
    rows = [{"type": "Person", "data": {"name": "eve", "age": 6}}]
    with pytest.raises(PreconditionFailed, match="decide anew"):
        load(store, rows, mode="merge", if_commit=before)
    load(store, rows, mode="merge", if_commit=store.snapshot().head.graph_commit_id)


def cleaned_away(store: GraphStore) -> None:
    commits = [put(store, **{f"n{number}": number}) for number in range(6)]
    cleanup(store, keep_versions=3, confirm=True)
    query = "query all() { match { $p: Person } return { $p.name } }"
    with open_store(store.uri, read_only=True) as reader:
        with pytest.raises(HistoryGap, match="Read a newer commit"):
            Graph(reader).query(query, at=commits[0].graph_commit_id)
        assert len(Graph(reader).query(query, at=commits[-1].graph_commit_id)) == 9


def drift_stops_cleanup(store: GraphStore) -> None:
    deleted(store, "bob")
    with pytest.raises(RecoveryRequired, match="Run `omnigraph repair` first"):
        cleanup(store, keep_versions=3, confirm=True)
    assert repair(store, confirm=True, force=True).exit_code == 0
    assert not failed(cleanup(store, keep_versions=3, confirm=True))


def failed(result: CleanupResult) -> list[str]:
    return [row.table_key for row in result.tables if row.error]


def files_that_stay(store: GraphStore) -> None:
    for number in range(6):
        put(store, **{f"n{number}": number})
    removing = store.tables.remove_versions

    def failing(location: str, branch: str | None, unwanted: Any) -> int:
        if location.startswith("nodes/"):
            raise StorageError("removing old versions failed: permission denied")
        return removing(location, branch, unwanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.tables, "remove_versions", failing)
        assert failed(cleanup(store, keep_versions=3, confirm=True)) == [PERSON]
    assert not failed(cleanup(store, keep_versions=3, confirm=True))


def leftovers(store: GraphStore) -> None:
    store.tables.create_fork(table_of(store.snapshot().pin(PERSON)), "f-orphan")
    with override(cleanup_grace=0.0):
        assert {finding.rule for finding in looked_at(store).findings} == {Rule.LEFTOVERS}
        cleanup(store, keep_versions=3, confirm=True)
        assert looked_at(store).ok


def rows_of_other_tools(store: GraphStore) -> None:
    knows(store, "ada", "bob")
    force(store, PERSON, [{"id": "cid", "name": "cid", "age": 9}])
    force(store, PERSON, [], delete=["bob"])
    assert {finding.rule for finding in looked_at(store).findings} == {Rule.UNIQUE_IDS, Rule.ENDPOINTS}
    graph = Graph(store)
    graph.mutate('query q() { delete Person where name = "cid" }')
    graph.mutate('query q() { delete Knows where to = "bob" }')


def log_has_a_hole(store: GraphStore) -> None:
    with open_store(store.uri) as opened:
        parent = opened.snapshot().head.parent_commit_id
        assert parent is not None
        rewrite_log(opened, parent)
    assert Rule.LOGGED in {finding.rule for finding in looked_at(store).findings}
    with open_store(store.uri) as opened:
        rebuilt = repair(opened, confirm=True).log
        assert rebuilt is not None
        assert rebuilt.lost == ()
        assert repair(opened, confirm=True).log is None


ROWS: dict[str, Callable[[GraphStore], None]] = {
    '`recovery_required`, "reopen the graph for writing"': died_between_tables,
    '`recovery_required`, "run `omnigraph repair`"': changed_outside,
    '"published data is missing"': published_is_missing,
    "`busy`": held_by_another,
    "`conflict` from a write": somebody_was_first,
    "`history_gap`": cleaned_away,
    'cleanup: "run `omnigraph repair` first"': drift_stops_cleanup,
    "cleanup row with an error": files_that_stay,
    'verify: "nothing unreferenced is old"': leftovers,
    'verify: "ids are unique", "endpoints exist"': rows_of_other_tools,
    'verify: "every manifest version has its commit"': log_has_a_hole,
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_run_book(row: str, tmp_path: Path) -> None:
    with create_store(tmp_path / "graph", SCHEMA) as store:
        put(store, ada=1, bob=2)
        put(store, cid=3)
        ROWS[row](store)
    sound(str(tmp_path / "graph"))


def test_every_row_is_played() -> None:
    page = PAGE.read_text()
    assert rows_of(page[page.index("## Run-book") : page.index("### Bad days")]) == set(ROWS)
