"""The writes that are killed, each as a top-level function that a child process can run, with the state it starts
from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, open_store
from tests.faults.invariants import GraphContent, observe
from tests.faults.writers import new_graph, put_friends, put_people


@dataclass(frozen=True, slots=True)
class Scenario:
    """A write of two tables (`work`, in a child) on a graph that `prepare` made, and the branch it goes to."""

    name: str
    branch: str
    prepare: Callable[[GraphStore], None]


def work(uri: str, branch: str) -> None:
    """The write that is killed."""
    store = open_store(uri)
    put_friends(store, {"bob": 7, "ada": 37}, [("ada", "bob"), ("bob", "ada")], branch)


def write_on_and_on(uri: str, branch: str, name: str, acknowledged: str) -> None:
    """Write a person and an edge to it, again and again, noting each write that was acknowledged."""
    Path(f"{acknowledged}.{name}").touch()
    store = open_store(uri)
    with open(acknowledged, "a", buffering=1) as notes:
        for number in range(10_000):
            person = f"{name}-{number}"
            put_friends(store, {person: number}, [("ada", person)], branch)
            notes.write(f"{person}\n")


def reopen(uri: str) -> None:
    """Recovery, to be killed."""
    open_store(uri)


def next_write(branch: str) -> Callable[[GraphStore], object]:
    """A later write to the same tables."""
    return lambda store: put_friends(store, {"zoe": 1}, [("zoe", "ada")], branch)


def _nothing(store: GraphStore) -> None:
    create_branch(store, "other")
    put_people(store, {"olga": 50}, "other")


def _branch(store: GraphStore) -> None:
    create_branch(store, "review")
    _nothing(store)


def _branch_with_forks(store: GraphStore) -> None:
    create_branch(store, "review")
    put_friends(store, {"carl": 30}, [("ada", "carl")], "review")
    _nothing(store)


SCENARIOS = [
    Scenario("main", "main", _nothing),
    Scenario("first write of a branch", "review", _branch),
    Scenario("later write of a branch", "review", _branch_with_forks),
]


def make_graph(place: Path | str, scenario: Scenario) -> tuple[str, GraphContent, GraphContent]:
    """A fresh graph for a scenario, in a directory or at a URI: where it is, what it shows, and what it will show after
    the write."""
    uri = str(place / "graph") if isinstance(place, Path) else place
    scenario.prepare(new_graph(uri))
    before, after = _expected(scenario)
    return uri, before, after


@cache
def _expected(scenario: Scenario) -> tuple[GraphContent, GraphContent]:
    with tempfile.TemporaryDirectory() as directory:
        uri = str(Path(directory, "graph"))
        store = new_graph(uri)
        scenario.prepare(store)
        before = observe(store)
        work(uri, scenario.branch)
        return before, observe(store)
