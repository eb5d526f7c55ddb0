"""What a process keeps of the states that it has seen: the newest ones, and not one for each commit of its life."""

import gc
from pathlib import Path

import pytest

from omnigraph.config import settings
from omnigraph.ledger.branches import branches
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.mutate.mutate import mutate
from tests.ledger.graphs import counted, publish_move

TYPES = 80
INSERT = "query q($s: String) { insert T0 { name: $s } }"


@pytest.fixture
def graph(tmp_path: Path) -> GraphStore:
    """A graph whose states are large, so that few of them fill what is kept."""
    schema = "".join(f"node T{number} {{ name: String @key }}\n" for number in range(TYPES))
    return create_store(str(tmp_path / "graph"), schema)


def living_states() -> int:
    gc.collect()
    return sum(1 for found in gc.get_objects() if isinstance(found, ManifestState))


def test_states_do_not_add_up_with_the_commits_of_a_process(graph):
    before = living_states()
    for number in range(3 * settings().manifest_cache):
        mutate(graph, INSERT, params={"s": f"row-{number}"})
    graph.unlogged.flush()
    assert graph.manifest.kept() <= settings().manifest_cache + 1
    assert living_states() - before <= settings().manifest_cache + 8


def test_the_heads_of_branches_stay_known_whatever_was_published_since(graph):
    refs = [branches.create_branch(graph, f"b{number}") for number in range(4)]
    heads = [graph.manifest.read(ref) for ref in refs]
    for _ in range(2 * settings().manifest_cache):
        publish_move(graph, table_key="node:T0")
    with counted(graph) as calls:
        assert all(graph.manifest.at(head.table) is head for head in heads)
    assert calls["open"] == 0
