"""Histories in which the schema changes too, on any branch, while rows are written and branches are merged.

Every change of the schema that is made here goes one way: a property is not there yet, then there, then renamed or
dropped; a number gets wider. So the schema of a merge is, thing by thing, the further of both sides, and that is what
is expected: no base has to be looked at. The rows are the model's, as in every other history.
"""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.model.graph_model import TABLES, Row
from tests.model.histories import EXTRA, HistoriesMachine, _branch, _death
from tests.model.steps import Step

ADDED, RENAMED, DROPPED = 1, 2, 3
WIDE = "wide"

Extras = dict[Any, int]


class SchemaMachine(HistoriesMachine):
    """A graph and a model, given the same history with changes of the schema."""

    set_at: dict[str, Extras]
    renamed: set[int]
    dropped: set[int]
    made: int

    def extras(self, commit_id: str) -> Extras:
        """How far everything is at a commit, by the changes that were made on the way to it."""
        if not hasattr(self, "set_at"):
            self.set_at, self.renamed, self.dropped, self.made = {}, set(), set(), 0
        if commit_id not in self.set_at:
            commit = self.graph.commit(commit_id)
            found: Extras = {}
            for parent in (commit.parent_commit_id, commit.merged_parent_commit_id):
                for thing, rank in (self.extras(parent) if parent else {}).items():
                    found[thing] = max(rank, found.get(thing, 0))
            self.set_at[commit_id] = found
        return self.set_at[commit_id]

    def rows(self, branch: str, table: str) -> dict[Any, Row]:
        found = super().rows(branch, table)
        return {key: {name: row[name] for name in row if not EXTRA.fullmatch(name)} for key, row in found.items()}

    def check(self, *branches: str) -> None:
        super().check(*branches)
        for branch in branches:
            expected = self.extras(self.graph.head(branch).graph_commit_id)
            names = {f"{' xy'[rank]}{number}" for number, rank in expected.items() if number != WIDE and rank < DROPPED}
            catalog = self.graph.catalog(branch)
            found = {p.name for type_ in catalog.types() for p in type_.properties if EXTRA.fullmatch(p.name)}
            assert found == names, f"branch {branch}"
            age = next(node for node in catalog.nodes if node.name == "Person").by_name["age"]
            assert str(age.type) == ("I64" if WIDE in expected else "I32")

    @rule(number=_branch, what=st.sampled_from(["add", "add", "rename", "drop", "widen"]), which=st.integers(0, 9))
    def change_schema(self, number: int, what: str, which: int) -> None:
        branch = self.branch(number)
        planned = self.planned(branch, what, which)
        if planned is not None:
            self.graph.apply_schema(planned[0], branch=branch)
            self.follow_schema(branch, planned[1])

    @rule(number=_branch, what=st.sampled_from(["add", "widen"]), which=st.integers(0, 9), death=_death)
    def change_schema_killed(self, number: int, what: str, which: int, death: Any) -> None:
        branch = self.branch(number)
        planned = self.planned(branch, what, which)
        if planned is None:
            return
        before = self.graph.snapshot(branch=branch).schema_digest
        self.killed(Step("apply_schema", (planned[0],), {"branch": branch}), death)
        if self.graph.snapshot(branch=branch).schema_digest != before:
            self.follow_schema(branch, planned[1])
        else:
            self.note(branch)
        self.check_all()

    def follow_schema(self, branch: str, extras: Extras) -> None:
        self.set_at[self.graph.head(branch).graph_commit_id] = extras
        self.note(branch)
        self.check_all()

    def planned(self, branch: str, what: str, which: int) -> tuple[str, Extras] | None:
        """The text of a change, and how far everything is after it; None when there is nothing to change."""
        text = self.graph.schema_source(branch)
        known = dict(self.extras(self.graph.head(branch).graph_commit_id))
        if what == "add":
            self.made += 1
            table = list(TABLES)[which % len(TABLES)].replace(":", " ")
            changed = re.sub(rf"({table}\b[^{{]*{{)", rf"\1\n    x{self.made}: String?", text, count=1)
            return (changed, {**known, self.made: ADDED}) if changed != text else None
        if what == "widen":
            changed = text.replace("age: I32?", "age: I64?")
            return (changed, {**known, WIDE: 1}) if changed != text else None
        # What was renamed anywhere is dropped nowhere, and the other way round: that would be a conflict.
        taken = self.dropped if what == "rename" else self.renamed
        fresh = [n for n, rank in known.items() if n != WIDE and rank == ADDED and n not in taken]
        if not fresh:
            return None
        chosen = fresh[which % len(fresh)]
        (self.renamed if what == "rename" else self.dropped).add(chosen)
        new = f'y{chosen}: String? @rename_from("x{chosen}")' if what == "rename" else ""
        rank = RENAMED if what == "rename" else DROPPED
        return text.replace(f"x{chosen}: String?", new), {**known, chosen: rank}
