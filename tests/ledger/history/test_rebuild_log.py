"""A damaged or missing commit log is rebuilt, and a lost newest manifest version is noticed, never built upon."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import RecoveryRequired
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import GraphCommit
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import Rule, verify
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.writers import PERSON, content, new_graph, put_company, put_people


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    """Two branches with commits, and one that is gone."""
    made = new_graph(str(tmp_path / "graph"))
    create_branch(made, "gone")
    put_people(made, {"x": 1}, "gone")
    delete_branch(made, "gone")
    create_branch(made, "review")
    for number in range(3):
        put_people(made, {f"m{number}": number})
        put_people(made, {f"r{number}": number}, "review")
    return made


def history(store: GraphStore) -> dict[str, tuple[GraphCommit, object]]:
    return {c.graph_commit_id: (c, store.commits.pins(c.graph_commit_id)) for c in store.commits.graph()}


def missing(store: GraphStore) -> None:
    store.objects.delete_prefix(LOG)


def torn_manifest(store: GraphStore) -> None:
    newest = min(Path(store.uri, LOG, "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:40])


def torn_data(store: GraphStore) -> None:
    for file in Path(store.uri, LOG, "data").glob("*.lance"):
        file.write_bytes(b"\0" * file.stat().st_size)


@pytest.mark.parametrize("damage", [missing, torn_manifest, torn_data])
def test_opening_for_writing_rebuilds_it_and_keeps_the_damaged_one(store: GraphStore, damage) -> None:
    before, seen = history(store), observe(store)
    damage(store)
    with open_store(store.uri, read_only=True) as reader:
        assert observe(reader) == seen
    with open_store(store.uri) as opened:
        assert history(opened) == before
        put_people(opened, {"next": 1})
        check_history(opened)
        check_pins_are_heads(opened)
        assert verify(opened).ok
        kept = opened.objects.list("__set_aside/logs")
        assert bool(kept) == (damage is not missing)


def test_what_cannot_be_recovered_is_said_and_not_complained_of_for_ever(
    store: GraphStore, caplog: pytest.LogCaptureFixture
) -> None:
    cleanup(store, keep_versions=1, confirm=True, force=True)
    missing(store)
    with open_store(store.uri) as opened:
        assert "could not be recovered" in caplog.text
        put_people(opened, {"next": 1})
        assert verify(opened).ok


def test_commits_behind_a_gap_stay_behind_it(store: GraphStore) -> None:
    """The old log knows the first commits, the manifest the last ones, and nobody those in between."""
    early = {path.path: store.objects.get(path.path)[0] for path in store.objects.list(LOG)}
    for number in range(12):
        put_people(store, {f"late{number}": number})
    cleanup(store, keep_versions=3, confirm=True, force=True)
    missing(store)
    for path, content_ in early.items():
        store.objects.put(path, content_)
    torn_manifest(store)
    with open_store(store.uri) as opened:
        main = opened.branch("main")
        assert opened.commits.newest_of(main.incarnation) == opened.manifest.read(main).head.graph_commit_id
        put_people(opened, {"next": 1})
        assert verify(opened).ok


def test_repair_finds_damage_deep_in_the_log(store: GraphStore) -> None:
    before = history(store)
    with pytest.MonkeyPatch.context() as patch:
        # Every commit gets a fragment of its own, so that an old one can be damaged below a sound tail.
        patch.setenv("OMNIGRAPH_COMMIT_LOG_TAIL_ROWS", "1")
        from omnigraph.config import override

        with override(commit_log_tail_rows=1):
            put_people(store, {"a": 1})
            put_people(store, {"b": 1})
            before = history(store)
    oldest = min(Path(store.uri, LOG, "data").glob("*.lance"), key=lambda file: file.stat().st_mtime_ns)
    named = {fragment.id for fragment in store.tables.fragments(store.tables.head(LOG))}
    assert len(named) > 1
    for file in Path(store.uri, LOG, "data").glob("*.lance"):
        if file.stat().st_size > 4096 or file == oldest:
            file.write_bytes(b"\0" * file.stat().st_size)
    with open_store(store.uri) as opened:
        done = repair(opened, confirm=True)
        assert done.log is not None
        assert done.exit_code == 0
        assert history(opened) == before


def lose_newest(store: GraphStore, branch: str, count: int = 1) -> None:
    line = store.branch(branch).manifest_branch
    place = Path(store.uri, "__manifest", *(["tree", line] if line else []), "_versions")
    for file in sorted(place.glob("*.manifest"))[:count]:
        file.unlink()


@pytest.mark.parametrize("branch", ["main", "review"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("restore", [False, True])
def test_a_lost_newest_manifest_version(store: GraphStore, branch: str, count: int, restore: bool) -> None:
    before = observe(store)
    lost = store.snapshot(branch=branch).head
    lose_newest(store, branch, count)
    with open_store(store.uri, read_only=True) as reader:
        findings = [f for f in verify(reader).findings if f.rule is Rule.ACKNOWLEDGED]
        assert [f.branch for f in findings] == [branch]
        assert lost.graph_commit_id in findings[0].message
    with open_store(store.uri) as opened:
        with pytest.raises(RecoveryRequired, match=lost.graph_commit_id):
            put_people(opened, {"next": 1}, branch)
        with pytest.raises(RecoveryRequired, match="repair"):
            put_company(opened, "acme", branch)
        other = "main" if branch == "review" else "review"
        put_company(opened, "acme", other)
        before[other] = observe(opened)[other]
        assert [head.action for head in repair(opened).heads] == ["reported"]
        done = repair(opened, confirm=True, force=True, restore=restore)
        assert done.exit_code == 0
        if not restore:
            assert observe(opened) == before
        check_pins_are_heads(opened)
        put_people(opened, {"next": 1}, branch)
        assert "next" in {row[0] for row in content(opened, branch)[PERSON]}
        assert verify(opened).ok
    with open_store(store.uri) as again:
        put_people(again, {"later": 1}, branch)
