"""Combined commits: several mutations in one commit that tells them apart; a failure is its own."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ValidationFailed
from omnigraph.failpoints import active
from omnigraph.ledger.commit.queue import Footprint
from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.combined import mutate_combined
from omnigraph.write.mutate.mutate import mutate
from omnigraph.write.results import MutationResult
from tests.faults.harness import run_killed
from tests.write.graphs import company, edge, fill, ids, person, rows
from tests.write.together import in_line

INSERT = "query put($s: String) { insert Person { slug: $s } }"


def statements(body: str, actor: str | None = None):
    """One mutation of these statements, to be called with a store."""
    return lambda store, **more: mutate_combined(store, f"query q() {{ {body} }}", actor=actor, **more)


def together(store: GraphStore, *bodies: str, branch: str = "main") -> list[object]:
    """Run mutations in one combined commit."""
    return in_line(
        store, [partial(statements(body, f"act-{n}"), store, branch=branch) for n, body in enumerate(bodies)], branch
    )


MADE_IDS = {"edge:Knows", "edge:WorksAt", "edge:Owns", "node:Note"}
"""Tables whose rows get ids that nobody could know."""


def contents(store: GraphStore, branch: str = "main") -> dict[str, list[str]]:
    """Every row of every table, without the ids that were made up."""
    found = {}
    for key in store.snapshot(branch=branch).tables:
        dropped = {"id"} if key in MADE_IDS else set()
        found[key] = sorted(str({k: v for k, v in row.items() if k not in dropped}) for row in rows(store, key, branch))
    return found


def without_made_ids(error: object) -> str:
    return re.sub(r"01[0-9A-Z]{24}", "…", str(error))


def test_many_mutations_are_one_commit_that_lists_them(store: GraphStore):
    fill(store, person("p0"))
    before = store.snapshot().head
    calls = [
        partial(mutate_combined, store, INSERT, params={"s": f"n{n}"}, actor="ada" if n % 2 else "bob")
        for n in range(6)
    ]
    results = in_line(store, calls)
    head = store.snapshot().head
    assert head.parent_commit_id == before.graph_commit_id, "one commit for all"
    assert head.actor_id is None
    assert [(o.actor_id, o.query_name, o.affected_nodes, o.affected_edges) for o in head.operations] == [
        ("ada" if n % 2 else "bob", "put", 1, 0) for n in range(6)
    ]
    assert [o.touched for o in head.operations] == [(("node:Person", (f"n{n}",)),) for n in range(6)]
    for number, result in enumerate(results):
        assert isinstance(result, MutationResult)
        assert (result.commit, result.actor_id) == (head, "ada" if number % 2 else "bob")
        assert result.operation_id == head.operations[number].operation_id
    assert ids(store, "node:Person") == ["n0", "n1", "n2", "n3", "n4", "n5", "p0"]


def test_the_log_the_feed_and_another_process_tell_who_did_what(store: GraphStore):
    together(store, 'insert Person { slug: "a" }', 'insert Person { slug: "b" }')
    head = store.snapshot().head
    with og.open(store.uri, read_only=True) as graph:
        assert graph.commit(head.graph_commit_id) == head, "the log has the operations too"
        for actor in ("act-0", "act-1"):
            assert [commit.graph_commit_id for commit in graph.log(by=actor)] == [head.graph_commit_id]
        assert graph.log(by="act-2") == []
        block = next(iter(graph.changes(since=head.parent_commit_id).blocks))
        by_id = {i: o.actor_id for o in block.commit.operations for _, touched in o.touched for i in touched}
        assert {change.id: by_id[change.id] for change in block.changes} == {"a": "act-0", "b": "act-1"}
        assert block.commit.to_json()["operations"][0]["query_name"] == "q"


def combine(uri: str) -> None:
    """Two people in one commit, to be killed."""
    together(open_store(uri), 'insert Person { slug: "a" }', 'insert Person { slug: "b" }')


def test_recovery_keeps_the_operations_and_the_audit_names_everybody(store: GraphStore):
    run_killed(combine, store.uri, at="write.tables_committed")
    with open_store(store.uri) as reopened:
        assert {"a", "b"} <= set(ids(reopened, "node:Person")), "rolled forward"
        assert [row.recovery_for_actor for row in reopened.audit.list()] == ["act-0, act-1"]
        assert [one.actor_id for one in reopened.snapshot().head.operations] == ["act-0", "act-1"]


def test_one_that_fails_drops_out_alone_with_its_own_error(store: GraphStore):
    results = together(
        store,
        'insert Person { slug: "a", age: 1 }',
        'insert Person { slug: "b", age: 999 }',
        'insert Knows { from: "a", to: "nobody" }',
        'insert Knows { from: "a", to: "a" }',
    )
    assert isinstance(results[1], ValidationFailed)
    assert "age" in str(results[1])
    assert isinstance(results[2], ValidationFailed)
    assert "nobody" in str(results[2])
    assert (ids(store, "node:Person"), len(ids(store, "edge:Knows"))) == (["a"], 1)
    assert [o.actor_id for o in store.snapshot().head.operations] == ["act-0", "act-3"]


SERIES = [
    ('insert Person { slug: "a", mail: "m@x" }', 'insert Person { slug: "b", mail: "m@x" }'),
    ('insert Knows { from: "a", to: "late" }', 'insert Person { slug: "late" }', 'insert Person { slug: "a" }'),
    (
        'insert Person { slug: "new", age: 1 }',
        'insert Knows { from: "new", to: "p0" }',
        'update Person set { age: 2 } where slug = "new"',
        "update Person set { age: 3 } where age = 2",
        'insert WorksAt { from: "new", to: "acme" }',
        'insert WorksAt { from: "new", to: "initech" }',
        'delete Person where slug = "p1"',
        'insert Knows { from: "p1", to: "p0" }',
        'insert Person { slug: "p1", name: "again" }',
        'delete Knows where src = "p0"',
        'delete WorksAt where src = "new"',
        'insert WorksAt { from: "new", to: "initech" }',
        'update Person set { mail: "one@x" } where slug = "p0"',
        'update Person set { mail: "one@x" } where slug = "p2"',
        'insert Company { name: "acme", size: 7, tags: ["t"] }',
        'update Company set { size: 8 } where name = "acme"',
        'insert Rates { from: "p0", to: "acme", stars: 1 }',
        'insert Rates { from: "p0", to: "acme", stars: 5 }',
        'delete Company where name = "acme"',
        'delete Person where slug = "new"',
        'insert Note { text: "x" }',
    ),
    ('insert Person { slug: "gone" }', 'delete Person where slug = "gone"'),
    ('update Person set { age: 40 } where slug = "p0"', 'update Person set { age: 30 } where slug = "p0"'),
]


@pytest.mark.parametrize("branch", ["main", "review"])
def test_together_they_mean_the_same_as_one_after_the_other(branch: str, tmp_path: Path):
    """Each over what those before it left, validated on its own: the same rows and the same refusals."""
    from omnigraph.ledger.branches.branches import create_branch
    from omnigraph.ledger.store import create_store
    from tests.write.graphs import SCHEMA

    start = [person("p0", age=30), person("p1"), person("p2"), company("acme"), company("initech")]
    start += [edge("Knows", "p0", "p1"), edge("Knows", "p0", "p2"), edge("WorksAt", "p1", "acme")]
    for number, series in enumerate(SERIES):
        stores = [create_store(tmp_path / f"{number}-{way}", SCHEMA) for way in ("together", "serial")]
        for one in stores:
            fill(one, *start)
            if branch != "main":
                create_branch(one, branch)
        combined = together(stores[0], *series, branch=branch)
        serial: list[object] = []
        for body in series:
            try:
                serial.append(mutate(stores[1], f"query q() {{ {body} }}", branch=branch))
            except og.errors.OmniGraphError as error:
                serial.append(error)
        for body, one, other in zip(series, combined, serial):
            assert type(one) is type(other), (body, one, other)
            if isinstance(one, MutationResult) and isinstance(other, MutationResult):
                assert (one.affected_nodes, one.affected_edges) == (other.affected_nodes, other.affected_edges), body
                assert (one.commit is None) == (other.commit is None), body
            else:
                assert without_made_ids(one) == without_made_ids(other), body
        assert contents(stores[0], branch) == contents(stores[1], branch), series
        for one in stores:
            one.close()


def test_nothing_is_committed_when_all_of_them_fail_or_change_nothing(store: GraphStore):
    fill(store, person("p0"))
    head = store.snapshot().head
    results = together(store, 'insert Person { slug: "x", age: -1 }', 'update Person set { age: 1 } where slug = "q"')
    assert isinstance(results[0], ValidationFailed)
    assert isinstance(results[1], MutationResult)
    assert results[1].commit is None
    assert store.snapshot().head == head


def test_nobody_overtakes_a_write_that_it_meets(store: GraphStore):
    """A load between two mutations of one table stays between them."""
    fill(store, company("acme"))
    put = partial(mutate_combined, store, INSERT)
    results = in_line(
        store,
        [
            partial(put, params={"s": "first"}),
            partial(load, store, [person("between")], mode="append"),
            partial(put, params={"s": "last"}),
        ],
    )
    commits = [result.commit for result in results]
    assert commits[1].parent_commit_id == commits[0].graph_commit_id
    assert commits[2].parent_commit_id == commits[1].graph_commit_id


def test_writes_of_other_tables_do_not_wait(store: GraphStore):
    with store.queue.turn("main", Footprint(frozenset({"node:Note"}))):
        assert mutate_combined(store, INSERT, params={"s": "x"}).commit is not None
        assert mutate(store, INSERT, params={"s": "y"}).commit is not None


def test_a_storage_error_of_the_commit_reaches_everyone_and_nothing_is_left(store: GraphStore):
    with active("write.sidecar_put", "raise"):
        results = together(store, 'insert Person { slug: "a" }', 'insert Person { slug: "b" }')
    assert all(isinstance(result, Exception) for result in results), results
    assert ids(store, "node:Person") == []
    assert store.queue.waiting("main") == 0
    together(store, 'insert Person { slug: "a" }')
    assert ids(store, "node:Person") == ["a"]


def test_an_interrupted_carrier_leaves_the_others_their_turns(store: GraphStore, monkeypatch: pytest.MonkeyPatch):
    import omnigraph.write.mutate.combined as combined

    interrupted: list[combined.Rider] = []
    original = combined.prepare_combined

    def once(*args):
        if not interrupted:
            along = args[-1]
            interrupted.extend(along())
            assert len(interrupted) == 2
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(combined, "prepare_combined", once)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    results = together(store, *(f'insert Person {{ slug: "n{n}" }}' for n in range(3)))
    assert results[0] is None, "the first one was interrupted"
    assert ids(store, "node:Person") == ["n1", "n2"]
    assert results[1].commit == results[2].commit


def test_who_comes_while_others_are_prepared_is_taken_along(store: GraphStore, monkeypatch: pytest.MonkeyPatch):
    import omnigraph.write.mutate.combined as combined

    original = combined.run_mutation
    late: list[threading.Thread] = []
    found: list[MutationResult] = []

    def with_another(*args):
        if not late:
            late.append(
                threading.Thread(target=lambda: found.append(mutate_combined(store, INSERT, params={"s": "late"})))
            )
            late[0].start()
            while store.queue.waiting("main") < 2:
                time.sleep(0.001)
        return original(*args)

    monkeypatch.setattr(combined, "run_mutation", with_another)
    first = mutate_combined(store, INSERT, params={"s": "first"})
    late[0].join()
    assert ids(store, "node:Person") == ["first", "late"]
    assert first.commit == found[0].commit
    assert [operation.operation_id for operation in first.commit.operations] == [
        first.operation_id,
        found[0].operation_id,
    ]


def test_combining_is_off_by_default_and_if_commit_is_never_combined(tmp_path: Path):
    og.init(tmp_path / "g", schema="node Person { slug: String @key }").close()
    put = "query put($s: String) { insert Person { slug: $s } }"
    with og.open(tmp_path / "g") as plain:
        assert plain.mutate(put, s="a").commit.operations == ()
    with og.open(tmp_path / "g", combine=True, actor="ada") as graph:
        done = graph.mutate(put, s="b")
        assert [o.operation_id for o in done.commit.operations] == [done.operation_id]
        assert done.commit.actor_id == "ada"
        assert graph.mutate(put, s="c", if_commit=done.commit.graph_commit_id).commit.operations == ()


@pytest.fixture
def old_log(store: GraphStore) -> Iterator[GraphStore]:
    """A graph whose log was made before there were combined commits."""
    fill(store, person("p0"))
    staged = store.tables.stage_drop_columns(store.tables.head(LOG), ["operations"])
    store.tables.commit_staged(staged, "test")
    with open_store(store.uri) as again:
        yield again


def test_a_log_without_the_column_is_read_and_gets_it(old_log: GraphStore):
    assert len(old_log.commits.log(old_log.snapshot().head.graph_commit_id)) == 2
    together(old_log, 'insert Person { slug: "a" }', 'insert Person { slug: "b" }')
    with open_store(old_log.uri) as again:
        logged = again.commits.log(again.snapshot().head.graph_commit_id)
    assert [len(commit.operations) for commit in logged] == [2, 0, 0]


def test_the_ids_that_an_operation_lists_are_bounded(store: GraphStore):
    fill(store, *(person(f"p{n:03d}") for n in range(40)))
    together(store, 'update Person set { age: 5 } where slug != "zz"', 'insert Person { slug: "z" }')
    first, second = store.snapshot().head.operations
    assert (first.affected_nodes, len(first.touched[0][1]), first.touched_more) == (40, 16, True)
    assert (len(second.touched[0][1]), second.touched_more) == (1, False)
