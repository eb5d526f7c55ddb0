"""Many writers: nothing lost, nothing twice, never a dangling edge. Threads and processes, one table and several."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.errors import Conflict, OmniGraphError, ValidationFailed
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.faults.harness import answers_of, wait_for
from tests.write.graphs import SCHEMA, company, edge, fill, ids, person, rows

pytestmark = pytest.mark.usefixtures("logged_soon")

INSERT = "query q($s: String) { insert Person { slug: $s } }"
COMPANY = "query q($n: String) { insert Company { name: $n } update Company set { size: 1 } where name = $n }"
PERSON = "query q($s: String) { insert Person { slug: $s } update Person set { age: 1 } where slug = $s }"
COUNT_UP = 'query q($to: I64) { update Company set { size: $to } where name = "counter" }'
READ_AND_SET = 'query q($a: I32) { update Person set { age: $a } where slug = "counter" }'


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[GraphStore]:
    with create_store(tmp_path / "graph", SCHEMA) as made:
        yield made


def at_once(*work: Callable[[], object]) -> list[object]:
    """Run functions at the same time in threads; results, or the errors of ours that they raised."""
    start = threading.Barrier(len(work))

    def one(function: Callable[[], object]) -> object:
        start.wait()
        try:
            return function()
        except OmniGraphError as error:
            return error

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(one, work))


def in_processes(graph: GraphStore, work: Callable[[str, int], object], count: int) -> list[object]:
    """Run a function in processes of their own at the same time, each with its number; what each gave back."""
    return answers_of(work, [(graph.uri, number) for number in range(count)])


def commits(graph: GraphStore) -> int:
    """How many commits lead to the head of main, without the first."""
    graph.complete_log()
    count, commit = 0, graph.snapshot().head
    while commit.parent_commit_id is not None:
        count, commit = count + 1, graph.commits.get(commit.parent_commit_id)
    return count


def test_insert_only_writers_on_one_table_all_succeed(graph: GraphStore):
    def writer(number: int) -> None:
        for step in range(5):
            mutate(graph, INSERT, params={"s": f"w{number}-{step}"})

    assert at_once(*(lambda number=number: writer(number) for number in range(6))) == [None] * 6
    assert ids(graph, "node:Person") == sorted(f"w{w}-{s}" for w in range(6) for s in range(5))
    assert commits(graph) == 30


def test_the_same_key_inserted_by_many_is_there_once(graph: GraphStore):
    at_once(*(lambda: mutate(graph, INSERT, params={"s": "same"}) for _ in range(6)))
    assert ids(graph, "node:Person") == ["same"]
    assert commits(graph) == 1


def test_append_and_merge_loads_prepare_again(graph: GraphStore):
    def append(number: int) -> object:
        return load(graph, (person(f"a{number}-{n}") for n in range(3)), mode="append")

    def merge(number: int) -> object:
        return load(graph, [person("shared"), person(f"m{number}")], mode="merge")

    results = at_once(*(lambda n=n: append(n) for n in range(3)), *(lambda n=n: merge(n) for n in range(3)))
    assert not [result for result in results if isinstance(result, Exception)]
    assert len(ids(graph, "node:Person")) == 3 * 3 + 3 + 1


def test_an_updater_that_comes_second_waits_and_is_done_after_the_first(graph: GraphStore):
    fill(graph, person("counter", age=0))
    from omnigraph.failpoints import active

    gate = Path(graph.uri.removeprefix("file://")).parent / "gate"
    results: list[object] = []

    def slow() -> None:
        with active("write.premises_hold", f"pause:{gate}"):
            results.append(mutate(graph, READ_AND_SET, params={"a": 1}))

    def second() -> object:
        return mutate(graph, READ_AND_SET, params={"a": 2})

    first = threading.Thread(target=slow)
    first.start()
    wait_for(Path(f"{gate}.reached"))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second)
        threading.Event().wait(0.3)
        gate.touch()
        first.join()
        assert waiting.result().affected_nodes == 1
    assert rows(graph, "node:Person")[0]["age"] == 2


def increment(graph: GraphStore, times: int) -> None:
    """Count up by reading, and writing if nothing has changed since; a lost race is tried again."""
    done = 0
    while done < times:
        head = graph.snapshot().head
        size = rows(graph, "node:Company")[0]["size"]
        try:
            mutate(graph, COUNT_UP, params={"to": size + 1}, if_commit=head.graph_commit_id)
        except OmniGraphError:
            continue
        done += 1


@pytest.mark.slow
def test_a_counter_is_never_incremented_in_vain_by_threads(graph: GraphStore):
    """200 increments by 8 writers: exactly 200."""
    fill(graph, company("counter", size=0))
    assert at_once(*([lambda: increment(graph, 25)] * 8)) == [None] * 8
    assert rows(graph, "node:Company")[0]["size"] == 200
    assert commits(graph) == 201


def increment_ten_times(uri: str, _: int) -> None:
    with open_store(uri) as store:
        increment(store, 10)


@pytest.mark.slow
def test_a_counter_is_never_incremented_in_vain_by_processes(graph: GraphStore):
    fill(graph, company("counter", size=0))
    in_processes(graph, increment_ten_times, 4)
    assert rows(graph, "node:Company")[0]["size"] == 40
    assert commits(graph) == 41


def insert_six(uri: str, number: int) -> None:
    with open_store(uri) as store:
        for step in range(6):
            mutate(store, INSERT, params={"s": f"w{number}-{step}"})


@pytest.mark.slow
def test_insert_only_writers_in_processes_all_succeed(graph: GraphStore):
    in_processes(graph, insert_six, 3)
    assert len(ids(graph, "node:Person")) == 18
    assert commits(graph) == 18


def assert_no_dangling_edge(graph: GraphStore) -> None:
    people = set(ids(graph, "node:Person"))
    for row in rows(graph, "edge:Knows"):
        assert {row["src"], row["dst"]} <= people, "a dangling edge"


def test_no_write_skew_between_adding_edges_and_deleting_their_node(graph: GraphStore):
    fill(graph, *(person(f"p{n}") for n in range(15)), person("hub"))

    def link(n: int) -> object:
        return mutate(graph, 'query q($a: String) { insert Knows { from: $a, to: "hub" } }', params={"a": f"p{n}"})

    def drop(n: int) -> object:
        return mutate(graph, "query q($a: String) { delete Person where slug = $a }", params={"a": f"p{n}"})

    for n in range(15):
        outcomes = at_once(lambda n=n: link(n), lambda n=n: drop(n))
        assert all(not isinstance(o, Exception) or isinstance(o, Conflict | ValidationFailed) for o in outcomes)
        assert_no_dangling_edge(graph)


def delete_or_link(uri: str, number: int) -> list[str]:
    outcomes = []
    body = 'insert Knows { from: $a, to: "hub" }' if number else "delete Person where slug = $a"
    with open_store(uri) as store:
        for n in range(12):
            try:
                mutate(store, f"query q($a: String) {{ {body} }}", params={"a": f"p{n}"})
                outcomes.append("done")
            except OmniGraphError as error:
                outcomes.append(error.kind)
    return outcomes


@pytest.mark.slow
def test_no_write_skew_between_processes(graph: GraphStore):
    fill(graph, *(person(f"p{n}") for n in range(12)), person("hub"))
    for outcomes in in_processes(graph, delete_or_link, 2):
        assert set(outcomes) <= {"done", "conflict", "validation_failed"}
    assert_no_dangling_edge(graph)


def test_writers_on_other_tables_and_branches_do_not_conflict(graph: GraphStore):
    create_branch(graph, "other")

    def companies() -> None:
        for n in range(5):
            mutate(
                graph,
                COMPANY,
                params={"n": f"c{n}"},
            )

    def people(branch: str) -> None:
        for n in range(5):
            mutate(
                graph,
                PERSON,
                params={"s": f"p{n}"},
                branch=branch,
            )

    assert at_once(companies, lambda: people("main"), lambda: people("other")) == [None] * 3
    assert len(ids(graph, "node:Company")) == 5
    assert len(ids(graph, "node:Person")) == len(ids(graph, "node:Person", "other")) == 5


def test_two_first_writes_to_a_table_on_a_branch(graph: GraphStore):
    fill(graph, person("a"), person("b"))
    create_branch(graph, "review")
    results = at_once(*(lambda n=n: mutate(graph, INSERT, params={"s": f"n{n}"}, branch="review") for n in range(4)))
    assert not [result for result in results if isinstance(result, Exception)]
    assert ids(graph, "node:Person", "review") == ["a", "b", "n0", "n1", "n2", "n3"]
    assert ids(graph, "node:Person") == ["a", "b"]


def test_an_append_of_ids_that_another_writer_added_meanwhile_is_refused(graph: GraphStore):
    results = at_once(*(lambda: load(graph, [person("x"), edge("Knows", "x", "x")], mode="append") for _ in range(3)))
    assert sum(not isinstance(result, Exception) for result in results) == 1
    assert len(ids(graph, "edge:Knows")) == 1


def test_a_second_handle_sees_what_the_first_wrote(graph: GraphStore):
    with open_store(graph.uri) as other:
        mutate(graph, INSERT, params={"s": "a"})
        mutate(other, 'query q() { insert Knows { from: "a", to: "a" } }')
    assert len(ids(graph, "edge:Knows")) == 1
