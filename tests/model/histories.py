"""A graph and a model that are given the same history, over several branches: they are equal after every step.

Some steps are taken by a process of its own that is killed at it. Such a step has wholly happened or not at all, and
the model follows.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import omnigraph as og
from omnigraph.errors import HistoryGap, MergeConflicts, NotFound, StorageError, ValidationFailed
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.changes import EntityChange
from omnigraph.merge.stage import stage_located
from tests.model.graph_model import PEOPLE, PLACES, TABLES, GraphModel, Refused, Row
from tests.model.history_model import SCHEMA, Collides, HistoryModel
from tests.model.steps import REFUSED, WHILE_RECOVERING, Death, Step, die
from tests.model.test_writes import insert, record

FAULTS = (
    "merge.decided",
    "merge.staged",
    "write.premises_hold",
    "write.sidecar_put",
    "write.table_committed",
    "write.tables_committed",
    "write.published",
    "storage.commit.after",
)
NAMES = ("one", "two", "three", "four")

_branch = st.integers(0, len(NAMES))
_people, _places = st.sampled_from(PEOPLE), st.sampled_from(PLACES)
_person = st.fixed_dictionaries(
    {"slug": _people},
    optional={"age": st.none() | st.integers(0, 3), "mail": st.none() | st.sampled_from(["m1", "m2", "m3"])},
)
_place = st.fixed_dictionaries({"name": _places})
_knows = st.fixed_dictionaries({"src": _people, "dst": _people}, optional={"since": st.none() | st.integers(0, 3)})
_lives = st.fixed_dictionaries({"src": _people, "dst": _places}, optional={"rooms": st.none() | st.integers(0, 3)})
_rows = st.one_of(
    st.tuples(st.just("node:Person"), _person),
    st.tuples(st.just("node:Person"), _person),
    st.tuples(st.just("node:Place"), _place),
    st.tuples(st.just("edge:Knows"), _knows),
    st.tuples(st.just("edge:LivesIn"), _lives),
)
_many = st.lists(_rows, min_size=1, max_size=5)

EXAMPLES = int(os.environ.get("OMNIGRAPH_MODEL_EXAMPLES", "0"))
"""How many histories a deep run makes; 0 in an ordinary run."""

_at_a_place = st.builds(
    Death, place=st.integers(0, 30), hit=st.integers(1, 3), again=st.none() | st.sampled_from(WHILE_RECOVERING)
)
_at_a_moment = st.builds(Death, after=st.floats(0.0, 0.4))
# What happens at a moment cannot be repeated, so it is for runs that look for something.
_death = _at_a_place | _at_a_moment if EXAMPLES else _at_a_place


class HistoriesMachine(RuleBasedStateMachine):
    """A graph and a model, given the same history."""

    @initialize(rows=st.lists(_rows, max_size=8), takes_files=st.booleans())
    def begin(self, rows: list[tuple[str, Row]], takes_files: bool) -> None:
        """In half of the histories merges take even the smallest file as it is."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(stage_located, "ADOPTED_ROWS", 1 if takes_files else stage_located.ADOPTED_ROWS)
        self.directory = tempfile.mkdtemp(prefix="omnigraph-histories-")
        self.graph = og.init(f"{self.directory}/graph", schema=SCHEMA)
        self.history = HistoryModel()
        self.states: dict[str, GraphModel] = {"main": GraphModel()}
        self.made_from: dict[str, str] = {}
        self.is_cleaned = False
        self.note("main")
        everything = [("node:Person", {"slug": name}) for name in PEOPLE[:3]] + [("node:Place", {"name": "x"})]
        self.load_merge(0, [*everything, *rows])

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.graph.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            self.patch.undo()

    # --- what both do ----------------------------------------------------------------------------------------------

    def branch(self, number: int) -> str:
        names = sorted(self.states)
        return names[number % len(names)]

    def note(self, branch: str) -> None:
        """Take the new commits of a branch into the model: the newest has the model's state."""
        commit = self.graph.head(branch)
        fresh = []
        while commit.graph_commit_id not in self.history.commits:
            fresh.append(commit)
            if commit.parent_commit_id is None:
                break
            commit = self.graph.commit(commit.parent_commit_id)
        before = None if commit in fresh else self.history.commits[commit.graph_commit_id].state
        for made in reversed(fresh):
            parents = [id_ for id_ in (made.parent_commit_id, made.merged_parent_commit_id) if id_]
            is_newest = made is fresh[0]
            state = self.states[branch] if is_newest or before is None else before
            self.history.add(made.graph_commit_id, parents, state)

    def both(self, branch: str, on_model: Callable[[GraphModel], object], on_graph: Callable[[], object]) -> None:
        """Do a write on both. It lands on both or on neither."""
        expected = self.states[branch].copy()
        refused = False
        try:
            on_model(expected)
            expected.check()
        except Refused:
            refused = True
        try:
            on_graph()
        except ValidationFailed as error:
            reason = str(error)
            assert refused, f"the graph refused what the model takes: {reason}"
            return
        assert not refused, "the graph took what the model refuses"
        self.states[branch] = expected
        self.note(branch)
        self.check(branch)

    def check(self, *branches: str) -> None:
        for branch in branches:
            found = {table: self.rows(branch, table) for table in TABLES}
            assert found == self.states[branch].tables, f"branch {branch}"

    def check_all(self) -> None:
        assert set(self.graph.branch_list()) == self.states.keys()
        self.check(*self.states)

    def rows(self, branch: str, table: str) -> dict[Any, Row]:
        pin = self.graph.snapshot(branch=branch).pin(table)
        found = self.graph._store.tables.scan_table(table_of(pin)).drop_columns(["id"]).to_pylist()
        assert pin.row_count == len(found)
        by_key = {_key(table, row): row for row in found}
        assert len(by_key) == len(found), f"{table} on {branch} has a row twice"
        return by_key

    # --- writes ----------------------------------------------------------------------------------------------------

    @rule(number=_branch, rows=_many)
    def load_merge(self, number: int, rows: list[tuple[str, Row]]) -> None:
        branch = self.branch(number)
        self.both(
            branch,
            lambda model: [model.upsert(table, row) for table, row in rows],
            lambda: self.graph.load([record(*row) for row in rows], mode="merge", branch=branch),
        )

    @rule(number=_branch, rows=st.lists(_rows, min_size=1, max_size=3))
    def mutate(self, number: int, rows: list[tuple[str, Row]]) -> None:
        branch = self.branch(number)
        text = "query q() { " + "\n".join(insert(table, row) for table, row in rows) + " }"
        self.both(
            branch,
            lambda model: [model.upsert(table, row) for table, row in rows],
            lambda: self.graph.mutate(text, branch=branch),
        )

    @rule(number=_branch, rows=st.lists(_rows, min_size=1, max_size=6, unique_by=lambda r: (r[0], _key(*r))))
    def load_overwrite(self, number: int, rows: list[tuple[str, Row]]) -> None:
        branch = self.branch(number)

        def on_model(model: GraphModel) -> None:
            for table in {table for table, _ in rows}:
                model.tables[table] = {}
            for table, row in rows:
                model.append(table, row)

        self.both(
            branch, on_model, lambda: self.graph.load([record(*r) for r in rows], mode="overwrite", branch=branch)
        )

    @rule(number=_branch, who=_people)
    def delete_person(self, number: int, who: str) -> None:
        branch = self.branch(number)
        self.both(
            branch,
            lambda model: model.delete("node:Person", lambda row: row["slug"] == who),
            lambda: self.graph.mutate(f'query q() {{ delete Person where slug = "{who}" }}', branch=branch),
        )

    @rule(number=_branch, who=_people)
    def delete_edges(self, number: int, who: str) -> None:
        branch = self.branch(number)
        self.both(
            branch,
            lambda model: model.delete("edge:Knows", lambda row: row["src"] == who),
            lambda: self.graph.mutate(f'query q() {{ delete Knows where from = "{who}" }}', branch=branch),
        )

    # --- branches --------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), number=_branch)
    def create_branch(self, name: str, number: int) -> None:
        if name in self.states:
            return
        source = self.branch(number)
        self.graph.branch_create(name, source)
        self.states[name] = self.states[source].copy()
        self.made_from[name] = source
        self.check(name)

    @rule(number=_branch, back=st.integers(0, 6), name=st.sampled_from(NAMES))
    def create_branch_from_a_commit(self, number: int, back: int, name: str) -> None:
        """A branch from an old commit of a live one: the way to criss-cross."""
        if name in self.states:
            return
        source = self.branch(number)
        line = [commit for commit in self.graph.log(source) if commit.branch == source][: back + 1]
        if not line:
            return
        try:
            self.graph.branch_create(name, line[-1].graph_commit_id)
        except HistoryGap:
            assert self.is_cleaned
            return
        self.states[name] = self.history.commits[line[-1].graph_commit_id].state.copy()
        self.made_from[name] = source
        self.check(name)

    @precondition(lambda self: len(self.states) > 1)
    @rule(number=_branch)
    def delete_branch(self, number: int) -> None:
        name = self.branch(number)
        if name == "main" or name in self.made_from.values():
            return
        self.graph.branch_delete(name)
        del self.states[name]
        del self.made_from[name]
        self.check_all()

    @precondition(lambda self: len(self.states) > 1)
    @rule(
        source=_branch,
        onto=_branch,
        strategy=st.sampled_from([None, None, "ours", "theirs"]),
        granularity=st.sampled_from(["row", "property"]),
        fault=st.none() | st.none() | st.tuples(st.sampled_from(FAULTS), st.integers(1, 2)),
    )
    def merge(
        self, source: int, onto: int, strategy: str | None, granularity: str, fault: tuple[str, int] | None
    ) -> None:
        from_, into = self.branch(source), self.branch(onto)
        if from_ == into:
            return
        heads, expected, refused = self.merged(from_, into, strategy, granularity)
        try:
            if fault is None:
                result = self.graph.merge(from_, into, strategy=strategy, granularity=granularity)
            else:
                with active(fault[0], f"raise:{fault[1]}"):
                    result = self.graph.merge(from_, into, strategy=strategy, granularity=granularity)
        except MergeConflicts as error:
            reason, conflicts = str(error), error.conflicts
            assert refused is not None, f"the graph refused a merge that the model makes: {reason}"
            if isinstance(refused, Collides):
                found = {(c.table_key, c.row_id) for c in conflicts if c.kind.value.startswith("D")}
                assert found == {(table, _id(table, key)) for table, key in refused.keys}
            return
        except FailpointError:
            self.reopen()
            if refused is None and expected is not None and self.rows_of(into) == expected.tables:
                self.states[into] = expected
            self.note(into)
            self.check_all()
            return
        assert refused is None, f"the graph made a merge that the model refuses: {refused}"
        if expected is None:
            assert result.outcome == "already_up_to_date"
            return
        fast = heads[1] in self.history.ancestors(heads[0])
        assert result.outcome == ("fast_forward" if fast else "merged")
        self.states[into] = expected
        self.note(into)
        self.check_all()

    def merged(
        self, from_: str, into: str, strategy: str | None, granularity: str = "row"
    ) -> tuple[tuple[str, str], GraphModel | None, Exception | None]:
        """Both heads, and what the model says of their merge: a state, None when there is nothing to do, or why not."""
        heads = self.graph.head(from_).graph_commit_id, self.graph.head(into).graph_commit_id
        try:
            return heads, self.history.merged(*heads, strategy, granularity), None
        except (Refused, Collides) as error:
            return heads, None, error

    def rows_of(self, branch: str) -> dict[str, dict[Any, Row]]:
        return {table: self.rows(branch, table) for table in TABLES}

    @rule(number=_branch)
    def optimize(self, number: int) -> None:
        branch = self.branch(number)
        self.graph.optimize(branch=branch)
        self.note(branch)
        self.check(branch)

    @rule(keep=st.integers(1, 4))
    def cleanup(self, keep: int) -> None:
        """Old states go; what merges of live branches need stays."""
        self.graph.cleanup(keep_versions=keep, confirm=True, force=True)
        self.is_cleaned = True
        self.check_all()

    @rule()
    def reopen(self) -> None:
        self.graph.close()
        self.graph = og.open(f"{self.directory}/graph")

    # --- deaths ----------------------------------------------------------------------------------------------------

    def killed(self, step: Step, death: Death) -> int:
        """Let another process take a step and die at it, then open the graph again."""
        self.graph.close()
        end = die(f"{self.directory}/graph", step, death)
        self.graph = og.open(f"{self.directory}/graph")
        assert self.graph._store.sidecars.list() == []
        return end

    def follow(self, branch: str, end: int, expected: GraphModel, refused: bool) -> None:
        """Find out whether a write happened: wholly, or not at all."""
        assert refused or end != REFUSED, "the graph refused what the model takes"
        assert not (refused and end == 0), "the graph took what the model refuses"
        if not refused and (end == 0 or self.rows_of(branch) == expected.tables):
            self.states[branch] = expected
        self.note(branch)
        self.check_all()

    @rule(number=_branch, rows=_many, who=st.none() | _people, death=_death)
    def write_killed(self, number: int, rows: list[tuple[str, Row]], who: str | None, death: Death) -> None:
        """A load of rows, or the end of a person."""
        branch = self.branch(number)
        expected = self.states[branch].copy()
        refused = False
        step = Step("load", ([record(*row) for row in rows],), {"mode": "merge", "branch": branch})
        if who is not None:
            expected.delete("node:Person", lambda row: row["slug"] == who)
            step = Step("mutate", (f'query q() {{ delete Person where slug = "{who}" }}',), {"branch": branch})
        else:
            try:
                for table, row in rows:
                    expected.upsert(table, row)
                expected.check()
            except Refused:
                refused = True
        self.follow(branch, self.killed(step, death), expected, refused)

    @precondition(lambda self: len(self.states) > 1)
    @rule(source=_branch, onto=_branch, strategy=st.sampled_from([None, "ours", "theirs"]), death=_death)
    def merge_killed(self, source: int, onto: int, strategy: str | None, death: Death) -> None:
        from_, into = self.branch(source), self.branch(onto)
        if from_ == into:
            return
        _, expected, refused = self.merged(from_, into, strategy)
        step = Step("merge", (from_, into), {"strategy": strategy})
        self.follow(into, self.killed(step, death), expected or self.states[into], refused is not None)

    @rule(
        call=st.sampled_from(["branch_create", "branch_delete", "optimize", "cleanup"]),
        name=st.sampled_from(NAMES),
        number=_branch,
        death=_death,
    )
    def upkeep_killed(self, call: str, name: str, number: int, death: Death) -> None:
        """What changes no row of any branch: branches come and go as a whole."""
        branch = self.branch(number)
        if call == "branch_create":
            if name in self.states:
                return
            end = self.killed(Step(call, (name, branch)), death)
            if end == 0 or name in self.graph.branch_list():
                self.states[name] = self.states[branch].copy()
                self.made_from[name] = branch
        elif call == "branch_delete":
            if branch == "main" or branch in self.made_from.values():
                return
            end = self.killed(Step(call, (branch,)), death)
            if end == 0 or branch not in self.graph.branch_list():
                del self.states[branch]
                del self.made_from[branch]
        elif call == "optimize":
            self.killed(Step(call, (), {"branch": branch}), death)
            self.note(branch)
        else:
            self.killed(Step(call, (), {"keep_versions": 1 + number, "confirm": True, "force": True}), death)
            self.is_cleaned = True
        self.check_all()

    # --- questions -------------------------------------------------------------------------------------------------

    @rule(a=st.integers(0, 200), b=st.integers(0, 200))
    def diff(self, a: int, b: int) -> None:
        """Between any two commits, of deleted branches too as long as their rows are there."""
        ids = sorted(self.history.commits)
        left, right = ids[a % len(ids)], ids[b % len(ids)]
        try:
            found = list(self.graph.diff(left, right))
        except (HistoryGap, NotFound, StorageError):
            if self.is_cleaned:
                return
            gone = {self.graph.commit(id_).incarnation for id_ in (left, right)}
            assert gone - {ref.incarnation for ref in self.graph.branches.list()}, "only deleted branches lose states"
            return
        before, after = self.history.commits[left].state, self.history.commits[right].state
        assert _applied(before, found) == after.tables
        assert [(c.kind == "edge", c.type, c.id) for c in found] == sorted(
            (c.kind == "edge", c.type, c.id) for c in found
        )
        for change in found:
            assert change.old != change.new

    @rule(number=_branch)
    def feed(self, number: int) -> None:
        """The whole feed of a branch, applied to an empty graph, gives the branch."""
        branch = self.branch(number)
        copy = GraphModel()
        try:
            for block in self.graph.changes(branch).blocks:
                copy.tables = _applied(copy, list(block.changes))
        except HistoryGap:
            assert self.is_cleaned or len(self.made_from) < len(self.history.commits)
            return
        assert copy.tables == self.states[branch].tables


EXTRA = re.compile(r"[xy]\d+")
"""Properties that histories with changes of the schema add. The model of the rows knows nothing of them."""


def _applied(state: GraphModel, changes: list[EntityChange]) -> dict[str, dict[Any, Row]]:
    """A state after changes, each of which must fit what is there."""
    result = state.copy()
    for change in changes:
        table = f"{change.kind}:{change.type}"
        before, after = (
            {name.removeprefix("@"): row[name] for name in row if name != "@id" and not EXTRA.fullmatch(name)}
            if row
            else None
            for row in (change.old, change.new)
        )
        shown = after or before
        assert shown is not None
        key = _key(table, shown)
        assert result.tables[table].get(key) == before
        assert change.op.value == ("insert" if before is None else "delete" if after is None else "update")
        if after is None:
            del result.tables[table][key]
        else:
            result.tables[table][key] = after
    return result.tables


def _key(table: str, row: Row) -> Any:
    if table.startswith("edge:"):
        return (row["src"], row["dst"])
    return row["slug"] if table == "node:Person" else row["name"]


def _id(table: str, key: Any) -> str:
    return f'["{key[0]}","{key[1]}"]' if table.startswith("edge:") else str(key)
