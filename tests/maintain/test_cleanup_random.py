"""Whatever the history, cleanup never removes what a live branch, a tag or a retained commit needs."""

from __future__ import annotations

import random
import tempfile
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.config import override
from omnigraph.ledger.branches.branches import create_branch, delete_branch, descendants
from omnigraph.ledger.history.dag import first_parents
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.optimize.optimize import optimize
from omnigraph.maintain.tags import Tags
from omnigraph.merge.merge import merge
from tests.maintain.graphs import SCHEMA, Content, content, knows, put

STEPS = ("write", "write", "write", "edge", "branch", "merge", "delete", "optimize", "tag", "cleanup")


class _History:
    """A graph that random steps are taken on, and what each of its states was."""

    def __init__(self, store: GraphStore, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.states: dict[str, Content] = {}
        self.retained: set[str] = set()
        self.number = 0
        self.note("main")

    def note(self, branch: str) -> None:
        snapshot = self.store.snapshot(branch=branch)
        self.states[snapshot.head.graph_commit_id] = content(self.store, snapshot)
        self.retained.add(snapshot.head.graph_commit_id)

    def branches(self) -> list[str]:
        return self.store.refs.names()

    def take(self, step: str) -> None:
        branch = self.chance.choice(self.branches())
        self.number += 1
        match step:
            case "write":
                people = {f"p{self.chance.randrange(6)}": self.number for _ in range(self.chance.randrange(1, 4))}
                put(self.store, branch, **people)
            case "edge":
                put(self.store, branch, ada=self.number, bob=self.number)
                self.note(branch)
                knows(self.store, "ada", "bob", branch)
            case "branch":
                create_branch(self.store, f"b{self.number}", branch)
            case "merge":
                other = self.chance.choice(self.branches())
                if other != branch:
                    merge(self.store, branch, other, strategy="theirs")
                    self.note(other)
            case "delete":
                ref = self.store.branch(branch)
                if branch != "main" and not descendants(self.store, ref):
                    delete_branch(self.store, branch)
                    return
            case "optimize":
                optimize(self.store, branch)
            case "tag":
                Tags(self.store, branch, None).create(f"t{self.number}")
            case "cleanup":
                self.clean()
        self.note(branch)

    def clean(self) -> None:
        keep = self.chance.choice([1, 1, 2, 3, 5])
        result = cleanup(self.store, keep_versions=keep, force=True, confirm=True)
        assert not result.failed, result
        with open_store(self.store.uri) as reopened:
            graph = reopened.commits.graph()
            # An earlier cleanup may have kept less.
            kept: set[str] = set()
            for name in reopened.refs.names():
                self.read(reopened, name)
                head = reopened.snapshot(branch=name).head.graph_commit_id
                newest = {commit.graph_commit_id for commit in islice(first_parents(graph, head), keep)}
                kept |= newest & self.retained
            for commit_id in kept:
                self.read(reopened, commit_id)
            self.retained = kept
            for tag in reopened.refs.tags():
                self.read(reopened, tag.name)

    def read(self, store: GraphStore, target: str) -> None:
        snapshot = store.snapshot(target)
        assert content(store, snapshot) == self.states[snapshot.head.graph_commit_id], target


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(STEPS), min_size=8, max_size=24), st.integers(0, 2**16))
def test_every_branch_tag_and_retained_commit_reads_the_same_after_cleanup(steps: list[str], seed: int) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        override(cleanup_grace=0.0),
        create_store(Path(directory, "graph"), SCHEMA) as store,
    ):
        history = _History(store, seed)
        for step in steps:
            history.take(step)
        history.clean()
        for source in history.branches():
            if source != "main":
                merge(store, source, "main", strategy="ours")
        history.note("main")
        history.clean()
