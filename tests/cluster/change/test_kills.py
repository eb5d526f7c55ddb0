"""An apply that is killed, wherever that hits it: the next one settles what was cut off; nothing is lost or doubled."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cluster import operations
from omnigraph.cluster.folder.read_folder import read_folder
from omnigraph.cluster.state.cluster_store import ClusterStore
from omnigraph.errors import NotFound
from tests.cluster.deployments import change, load_people, write
from tests.cluster.operators import apply
from tests.faults.harness import run_killed

KILLS = [
    ("cluster.locked", 1, None),
    ("cluster.planned", 1, None),
    ("cluster.sidecar_put", 1, ("create_graph", "forgotten")),
    ("init.tables", 1, ("create_graph", "forgotten")),
    ("cluster.moved", 1, ("create_graph", "recorded")),
    ("cluster.recorded", 1, ("create_graph", "recorded")),
    ("cluster.sidecar_put", 2, ("apply_schema", "forgotten")),
    ("schema_apply.staged", 1, ("apply_schema", "forgotten")),
    ("cluster.moved", 2, ("apply_schema", "recorded")),
    ("cluster.recorded", 2, ("apply_schema", "recorded")),
    ("cluster.payloads", 1, None),
    ("cluster.published", 1, None),
    ("cluster.sidecar_put", 3, ("delete_graph", "forgotten")),
    ("remove_graph.unreferenced", 1, ("delete_graph", "reported")),
    ("cluster.moved", 3, ("delete_graph", "recorded")),
    ("cluster.recorded", 3, ("delete_graph", "recorded")),
]
"""Every step that can be cut off: the failpoint, which of its hits, and what the next apply tells of it."""

A_FEW = {("cluster.moved", 1), ("schema_apply.staged", 1), ("remove_graph.unreferenced", 1)}
ON_S3 = [kill for kill in KILLS if os.environ.get("OMNIGRAPH_KILL_EVERYWHERE") or kill[:2] in A_FEW]
"""There a lease has to run out each time, so an ordinary run tries one of each kind of step."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(write(tmp_path_factory.mktemp("prepared")))


def prepare(folder: Path) -> Path:
    """A deployment about to make a graph, change a schema, publish a query and a policy, and delete a graph."""
    assert operations.apply(folder, None).converged
    load_people(folder, "ada", "bob")
    old = "  notes:\n    schema: notes.pg\n    queries: queries/\n    embedding_provider: default\n"
    change(folder, "cluster.yaml", old, "  tasks:\n    schema: tasks.pg\n    queries: [queries/tasks.gq]\n")
    change(folder, "cluster.yaml", "[notes, cluster]", "[tasks, people, cluster]")
    (folder / "tasks.pg").write_text("node Task {\n    slug: String @key\n}\n")
    (folder / "queries/tasks.gq").write_text("query tasks() { match { $t: Task } return { $t.slug } }\n")
    change(folder, "people.pg", "age: I32?", "age: I32?\n    mail: String?")
    operations.approve(folder, "graph.notes", "act-ada")
    return folder


@pytest.mark.parametrize(("at", "hit", "recovered"), KILLS)
def test_the_next_apply_settles_it(
    prepared: Path, tmp_path: Path, at: str, hit: int, recovered: tuple[str, str] | None
) -> None:
    folder = tmp_path / "cluster"
    shutil.copytree(prepared, folder)
    run_killed(apply, str(folder), at=at, hit=hit)
    settled(folder, recovered)
    assert list((folder / "__cluster/recoveries").iterdir()) == []


@pytest.fixture(scope="module")
def killed_on_s3(s3_uri: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    """All of them die one after the other, so that their leases, which are short, run out together."""
    left = {}
    for at, hit, _ in ON_S3:
        left[at, hit] = folder = prepare(write(tmp_path_factory.mktemp("on-s3"), s3_uri()))
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OMNIGRAPH_LEASE_SECONDS", "3")
            environment.setenv("OMNIGRAPH_LEASE_RENEWAL_SECONDS", "300ms")
            run_killed(apply, str(folder), at=at, hit=hit)
    return left


@pytest.mark.s3
@pytest.mark.parametrize(("at", "hit", "recovered"), ON_S3)
def test_the_next_apply_settles_it_on_s3(
    killed_on_s3: dict[tuple[str, int], Path], at: str, hit: int, recovered: tuple[str, str] | None
) -> None:
    """A lock of the dead runs out there by itself, and a deleted graph leaves no object behind, listed or not."""
    settled(killed_on_s3[at, hit], recovered)


def settled(folder: Path, recovered: tuple[str, str] | None) -> None:
    """The next apply does what is left, once: whatever the killed one had done."""
    store = ClusterStore(read_folder(folder).storage)
    result = operations.apply(folder, None)
    assert [(told["step"], told["outcome"]) for told in result.recovered] == ([recovered] if recovered else [])
    if not result.converged:
        # What was approved was for another state than the one that the killed apply left.
        assert [c.address for c in operations.plan(folder).changes if c.approval] == ["graph.notes"]
        operations.approve(folder, "graph.notes", "act-ada")
        result = operations.apply(folder, None)
    assert result.converged
    assert not operations.apply(folder, None).changed

    status = operations.status(folder)
    assert status.sound
    assert sorted(status.state.resources) == [
        "graph.people",
        "graph.tasks",
        "policy.base",
        "provider.embedding.default",
        "query.tasks.tasks",
        "schema.people",
        "schema.tasks",
    ]
    assert {found.status for found in status.state.resources.values()} == {"applied"}
    assert len(status.state.approvals_used) == 1
    assert store.names_of_graphs() == ["people.omni", "tasks.omni"]
    with og.open(store.graph_uri("people")) as graph:
        assert graph.entity("Person", "bob") | {} == {"@id": "bob", "slug": "bob", "age": 30, "mail": None}
        assert len(graph.log()) == 3  # made, loaded, migrated: nothing twice
    with pytest.raises(NotFound):
        og.open(store.graph_uri("notes"))
