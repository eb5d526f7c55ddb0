"""`init`: refuses what is there, and a crash in the middle leaves either no graph or a whole one."""

from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import BadRequest, NotFound, OmniGraphError, SchemaError, StorageError
from omnigraph.ledger.layout import INIT_MARKER, OWN_NAMES
from omnigraph.ledger.store import create_store, open_store
from omnigraph.ledger.values import WriterKind
from omnigraph.storage.constants import LEASE_CLOCK_SKEW_SECONDS, LOCKS_DIRECTORY
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults import harness
from tests.faults.harness import answers_of
from tests.ledger.graphs import SCHEMA, add_people, people
from tests.ledger.places import everything_at
from tests.ledger.processes import make_graph, run_killed


def test_a_new_graph_is_whole(path):
    store = create_store(path, SCHEMA, actor="act-ada")
    snapshot = store.snapshot()
    assert sorted(snapshot.tables) == ["edge:Knows", "node:Person"]
    assert {pin.location.split("/")[0] for pin in snapshot.tables.values()} == {"nodes", "edges"}
    assert {pin.type_id for pin in snapshot.tables.values()} == {
        graph_type.id for graph_type in store.catalog(snapshot.schema_digest).types()
    }
    assert (snapshot.head.kind, snapshot.head.actor_id) == (WriterKind.INIT, "act-ada")
    assert store.commits.get(snapshot.head.graph_commit_id) == snapshot.head
    assert store.objects.get("_schema.pg")[0].decode() == SCHEMA
    assert store.objects.head(INIT_MARKER) is None
    for pin in snapshot.tables.values():
        assert pin.location.endswith(f"/{pin.type_id}")
        assert pin.owner == snapshot.branch.incarnation


def test_two_graphs_have_different_ids(new_place):
    stores = [create_store(new_place(), SCHEMA) for _ in range(2)]
    assert stores[0].graph_id != stores[1].graph_id
    assert stores[0].branch("main").incarnation != stores[1].branch("main").incarnation


def test_init_on_a_path_that_holds_a_graph_refuses(path):
    store = create_store(path, SCHEMA)
    add_people(store, "ada")
    with pytest.raises(BadRequest, match=r"there is a graph at .* already"):
        create_store(path, SCHEMA)
    assert people(store) == ["ada"]


@pytest.mark.parametrize("name", ["nodes/cluster.yaml", "people.jsonl", ".hidden"])
def test_init_refuses_a_place_that_holds_anything_and_touches_nothing(path, name):
    objects = open_objects(parse_root(path))
    objects.put(name, b"ours")
    before = everything_at(path)
    with pytest.raises(BadRequest, match=f"is not empty: it holds {name.split('/')[0]}. A graph has its directory"):
        create_store(path, SCHEMA)
    assert everything_at(path) == before
    assert objects.get(name)[0] == b"ours"


def test_init_takes_an_empty_directory(tmp_path):
    create_store(tmp_path, SCHEMA).close()


def test_a_schema_that_does_not_compile_makes_nothing(path):
    with pytest.raises(SchemaError):
        create_store(path, "node Person {")
    assert not everything_at(path)


@pytest.mark.parametrize(
    "failpoint", ["init.marked", "init.schema", "init.table", "init.manifest", "init.log", "init.ref"]
)
def test_killed_in_the_middle_there_is_no_graph_or_a_whole_one(path, failpoint):
    run_killed(make_graph, path, at=failpoint)
    if failpoint == "init.ref":
        with pytest.raises(BadRequest, match="there is a graph"):
            create_store(path, SCHEMA)
        store = open_store(path)
    else:
        for read_only in (True, False):
            with pytest.raises(NotFound):
                open_store(path, read_only=read_only)
        other = SCHEMA.replace("Knows", "Likes")
        store = create_store(path, other)
        assert "edge:Likes" in store.snapshot().tables
        schemas = [entry.path for entry in store.objects.list("") if entry.path.startswith("_schema")]
        assert schemas
        assert not any(b"Knows" in store.objects.get(schema)[0] for schema in schemas)
    add_people(store, "ada")
    assert people(open_store(path)) == ["ada"]


def test_a_graph_that_lost_the_ref_of_main_is_damaged_and_not_none(local_path):
    with create_store(local_path, SCHEMA) as store:
        add_people(store, "ada")
    Path(local_path, "_refs/branches/main.json").unlink()
    for read_only in (True, False):
        with pytest.raises(StorageError, match=r"_refs/branches/main.json is missing: .* salvage"):
            open_store(local_path, read_only=read_only)
    with pytest.raises(OmniGraphError):
        create_store(local_path, SCHEMA)
    assert any(Path(local_path, "nodes").rglob("*.lance"))


@pytest.mark.parametrize("below", ["", "/graph"])
def test_a_file_is_no_place_for_a_graph_and_nobody_waits_for_one_there(local_path, below, monkeypatch):
    """Lance would ask for a manifest there again and again, for two seconds."""
    Path(local_path).write_text("mine")
    monkeypatch.setattr("lance.dataset", lambda *_, **__: pytest.fail("Lance was asked"))
    with pytest.raises(BadRequest, match="a graph is a directory"):
        create_store(local_path + below, SCHEMA)
    for read_only in (False, True):
        with pytest.raises(NotFound, match="there is no graph at"):
            open_store(local_path + below, read_only=read_only)
    assert Path(local_path).read_text() == "mine"


def test_a_directory_that_cannot_be_made_is_said_so():
    with pytest.raises(StorageError, match=r"the directory /proc/graph cannot be made"):
        create_store("/proc/graph", SCHEMA)


@pytest.mark.s3
def test_an_init_waits_for_the_lease_of_one_that_died(s3_uri, monkeypatch):
    """On S3 only, where a lease outlives its holder: for as long as the settings say, and no longer."""
    uri = s3_uri()
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "100ms")
    harness.run_killed(make_graph, uri, at="init.marked")
    with override(lease_seconds=LEASE_CLOCK_SKEW_SECONDS + 1, lease_wait_seconds=0.0):
        store = create_store(uri, SCHEMA)
    add_people(store, "ada")
    assert people(store) == ["ada"]


def test_of_processes_that_init_one_path_at_once_exactly_one_succeeds(path):
    said = sorted(answers_of(make_graph, [(path,)] * 3))
    assert said == ["made", "refused", "refused"]
    store = open_store(path)
    add_people(store, "ada")
    assert people(store) == ["ada"]


def test_what_init_makes_is_listed(path):
    create_store(path, SCHEMA)
    made = {name.partition("/")[0] for name in everything_at(path)}
    assert made - {LOCKS_DIRECTORY} <= set(OWN_NAMES)
