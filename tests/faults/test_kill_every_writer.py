"""Every writer that a user can call dies at each step that is its own and around each phase of its commit.

The phases are the same code for all of them and are killed at every failpoint elsewhere (`test_kill_writers`);
`OMNIGRAPH_KILL_EVERYWHERE=1` does it here too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from omnigraph.ledger.store import open_store
from tests.faults.graph_writers import WRITERS, Writer, build, write_next
from tests.faults.harness import failpoints_met, run_killed
from tests.faults.invariants import GraphContent, check_invariants, observe
from tests.faults.test_kill_writers import MET

pytestmark = pytest.mark.slow

AROUND_PHASES = {
    "write.prepared",
    "write.sidecar_put",
    "write.table_committed",
    "write.tables_committed",
    "publish.after",
    "write.published",
}
EVERYWHERE = bool(os.environ.get("OMNIGRAPH_KILL_EVERYWHERE"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph that all cases start from. A copy's forks read the template's files, which nobody changes."""
    place = tmp_path_factory.mktemp("template") / "graph"
    build(str(place))
    return place


def copy_of(graph: Path, place: Path) -> str:
    shutil.copytree(graph, place)
    return str(place)


def cases(met: dict[str, int]) -> list[tuple[str, int]]:
    """Where to kill: all hits of what is chosen."""
    chosen = [name for name in met if EVERYWHERE or name in AROUND_PHASES or name not in MET]
    return [(name, hit) for name in chosen for hit in range(1, met[name] + 1)]


def shown(uri: str) -> GraphContent:
    return observe(open_store(uri, read_only=True))


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_killed_writer_leaves_the_state_before_or_after(writer: Writer, template: Path, tmp_path: Path) -> None:
    start = template
    if writer.first is not None:
        start = Path(copy_of(template, tmp_path / "start"))
        writer.first(str(start))
    twin = copy_of(start, tmp_path / "twin")
    before = shown(twin)
    met = failpoints_met(writer.work, twin, writer.branch)
    after = shown(twin)
    outcomes = []
    for number, (failpoint, hit) in enumerate(cases(met)):
        uri = copy_of(start, tmp_path / str(number))
        run_killed(writer.work, uri, writer.branch, at=failpoint, hit=hit)
        try:
            outcomes.append(check_invariants(uri, before, after, next_write=write_next(writer.branch)))
        except BaseException as failure:
            failure.add_note(f"{writer.name} was killed at {failpoint}, hit {hit}")
            raise
        shutil.rmtree(uri)
    assert "before" in outcomes
    assert before == after or "after" in outcomes
