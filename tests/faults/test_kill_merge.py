"""A merge that also deletes its source dies in between: the merge has landed, and the branch is there or it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.ledger.store import open_store
from tests.faults.graph_writers import build, write_next
from tests.faults.harness import failpoints_met, run_killed
from tests.faults.invariants import check_invariants, observe

pytestmark = pytest.mark.slow


def merge_and_delete(uri: str) -> None:
    """Merge `review` and delete it."""
    og.open(uri, actor="act-ada").merge("review", delete_source=True)


@pytest.mark.parametrize(
    ("failpoint", "merged", "deleted"),
    [
        ("merge.decided", False, False),
        ("merge.staged", False, False),
        ("merge.before_delete_source", True, False),
        ("branch_delete.before_ref", True, False),
        ("branch_delete.after_ref", True, True),
        ("branch_delete.between_forks", True, True),
    ],
)
def test_killed_between_the_merge_and_the_deletion(failpoint: str, merged: bool, deleted: bool, tmp_path: Path) -> None:
    uri, twin = str(tmp_path / "graph"), str(tmp_path / "twin")
    for place in (uri, twin):
        build(place)
    expected = observe(open_store(uri, read_only=True))
    assert failpoints_met(merge_and_delete, twin)[failpoint]
    if merged:
        expected["main"] = observe(open_store(twin, read_only=True))["main"]
    if deleted:
        del expected["review"]
    run_killed(merge_and_delete, uri, at=failpoint)
    assert check_invariants(uri, expected, None, next_write=write_next("main")) == "before"
    if merged and not deleted:
        with og.open(uri) as graph:
            assert graph.merge("review", delete_source=True).source_deleted
