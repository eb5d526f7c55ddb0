"""Concurrent mutations equal some serial order: the order of their commits, replayed on a model in plain Python.

Every success must be possible, with the same counts, where its commit stands; every refusal and every mutation that
changed nothing must have been right at some state that was current while it ran; the end states are equal. So there is
no lost update, and no write skew over ends, uniqueness or cardinality.

`OMNIGRAPH_SERIALISABLE_ROUNDS=20 pytest tests/write/test_serialisable.py` runs more of the same, with other dice.
"""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import omnigraph as og
from omnigraph.errors import ValidationFailed
from omnigraph.ledger.values import GraphCommit
from tests.faults.harness import answers_of
from tests.write.serial_model import QUERIES, REFUSED, SCHEMA, Model, Operation, random_operation

pytestmark = pytest.mark.usefixtures("logged_soon")

ROUNDS = int(os.environ.get("OMNIGRAPH_SERIALISABLE_ROUNDS", "1"))


@dataclass(frozen=True)
class Done:
    """One mutation as its caller saw it, and the heads of the branch before and after."""

    operation: Operation
    outcome: str | tuple[int, int]
    commit: str | None
    operation_id: str | None
    before: str
    after: str


def write(uri: str, seed: int, operations: int, combine: bool, threads: int) -> list[Done]:
    """Random mutations from this process, by several threads on one handle. Nothing but a broken rule may fail."""
    with og.open(uri, combine=combine) as graph:
        start = threading.Barrier(threads)

        def one(number: int) -> list[Done]:
            dice = random.Random(seed * 1000 + number)
            start.wait()
            return [mutate(graph, random_operation(dice)) for _ in range(operations)]

        with ThreadPoolExecutor(threads) as pool:
            return [done for found in pool.map(one, range(threads)) for done in found]


def mutate(graph: og.Graph, operation: Operation) -> Done:
    kind, params = operation
    before = graph.head().graph_commit_id
    try:
        result = graph.mutate(QUERIES[kind], params=params)
    except ValidationFailed:
        return Done(operation, REFUSED, None, None, before, graph.head().graph_commit_id)
    commit = result.commit.graph_commit_id if result.commit is not None else None
    counts = (result.affected_nodes, result.affected_edges)
    return Done(operation, counts, commit, result.operation_id, before, graph.head().graph_commit_id)


def check(uri: str, done: list[Done]) -> None:
    """Replay the history and compare."""
    with og.open(uri) as graph:
        history: list[GraphCommit] = graph.log()[::-1]
        position = {commit.graph_commit_id: number for number, commit in enumerate(history)}
        model = Model()
        states: list[list[Model]] = []
        for commit in history:
            # A combined commit goes through states that no reader sees; its own members saw them.
            states.append([])
            for one in in_order(commit, done):
                assert model.apply(one.operation) == one.outcome, (one, commit)
                states[-1].append(model.copy())
            states[-1].append(model.copy())
        without = [one for one in done if one.commit is None]
        assert len(done) - len(without) == sum(len(in_order(commit, done)) for commit in history), "each once"
        for one in without:
            current = [state for each in states[position[one.before] : position[one.after] + 1] for state in each]
            assert any(state.copy().apply(one.operation) == one.outcome for state in current), one
        assert shown(graph) == model
        assert graph.verify().ok


def in_order(commit: GraphCommit, done: list[Done]) -> list[Done]:
    """The mutations of a commit, in the order in which it lists them."""
    own = {one.operation_id: one for one in done if one.commit == commit.graph_commit_id}
    if not commit.operations:
        return list(own.values())
    return [own[operation.operation_id] for operation in commit.operations]


def shown(graph: og.Graph) -> Model:
    def rows(query: str) -> list[dict[str, object]]:
        return graph.query(query).rows()

    people = rows("query q() { match { $p: Person } return { $p.slug as s, $p.age as a, $p.mail as m } }")
    cities = rows("query q() { match { $c: City } return { $c.slug as s } }")
    homes = rows("query q() { match { $p: Person $c: City $p livesIn $c } return { $p.slug as s, $c.slug as c } }")
    knows = rows("query q() { match { $p: Person $o: Person $p knows $o } return { $p.slug as s, $o.slug as t } }")
    return Model(
        {row["s"]: (row["a"], row["m"]) for row in people},
        {row["s"] for row in cities},
        {row["s"]: row["c"] for row in homes},
        {(row["s"], row["t"]) for row in knows},
    )


def prepared(uri: str) -> str:
    """A graph in which most mutations find something."""
    with og.init(uri, schema=SCHEMA):
        pass
    return uri


@pytest.mark.parametrize("combine", [False, True], ids=["single", "combined"])
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_threads(anywhere: str, combine: bool, round_: int):
    uri = prepared(anywhere)
    here = 12 if "://" not in anywhere else 4
    check(uri, write(uri, round_, here, combine, threads=6))


@pytest.mark.slow
@pytest.mark.parametrize("combine", [False, True], ids=["single", "combined"])
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_four_processes(anywhere: str, combine: bool, round_: int):
    uri = prepared(anywhere)
    here = 6 if "://" not in anywhere else 2
    calls = [(uri, 100 * (round_ + 1) + number, here, combine, 2) for number in range(4)]
    check(uri, [done for answer in answers_of(write, calls) for done in answer])


@pytest.mark.slow
def test_updates_of_one_row_are_never_lost_and_never_refused(anywhere: str):
    """Eight threads count one row up by comparing and setting: each success is one step."""
    with og.init(anywhere, schema=SCHEMA) as graph:
        graph.mutate(QUERIES["put_person"], s="counter", a=0, m="m")
        steps = 4 if "://" not in anywhere else 2
        read = 'query q() { match { $p: Person { slug: "counter" } } return { $p.age as a } }'

        def count_up() -> None:
            done = 0
            while done < steps:
                age = graph.query(read).rows()[0]["a"]
                done += graph.mutate(QUERIES["swap_age"], s="counter", a=age, b=age + 1).affected_nodes

        with ThreadPoolExecutor(8) as pool:
            for one in [pool.submit(count_up) for _ in range(8)]:
                one.result()
        assert graph.query(read).rows()[0]["a"] == 8 * steps


def test_the_check_finds_a_lost_update(tmp_path):
    """The oracle can fail: a mutation that claims to have happened, and did not."""
    uri = prepared(str(tmp_path / "g"))
    done = write(uri, 1, 6, False, threads=2)
    liar = next(one for one in done if one.commit is not None)
    false = Done(("put_city", {"s": "nowhere"}), (1, 0), liar.commit, None, liar.before, liar.after)
    with pytest.raises(AssertionError):
        check(uri, [false if one is liar else one for one in done])
