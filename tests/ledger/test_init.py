"""`init`: refuses what is there, and a crash in the middle leaves either no graph or a whole one."""

from pathlib import Path

import pytest

from omnigraph.diagnostics import SchemaError
from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.layout import INIT_MARKER, OWN_NAMES
from omnigraph.ledger.store import create_store, open_store
from omnigraph.ledger.values import WriterKind
from tests.ledger.graphs import SCHEMA, add_people, finish, killed, people, start_child, tree

INIT = "create_store(sys.argv[1], SCHEMA)"


def test_a_new_graph_is_whole(anywhere):
    store = create_store(anywhere, SCHEMA, actor="act-ada")
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


def test_two_graphs_have_different_ids(tmp_path):
    stores = [create_store(tmp_path / name, SCHEMA) for name in ("a", "b")]
    assert stores[0].graph_id != stores[1].graph_id
    assert stores[0].branch("main").incarnation != stores[1].branch("main").incarnation


def test_init_on_a_path_that_holds_a_graph_refuses(anywhere):
    store = create_store(anywhere, SCHEMA)
    add_people(store, "ada")
    with pytest.raises(BadRequest, match=r"there is a graph at .* already"):
        create_store(anywhere, SCHEMA)
    assert people(store) == ["ada"]


def test_init_does_not_touch_files_of_another_origin(path):
    stranger = Path(path) / "nodes" / "cluster.yaml"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("ours")
    with pytest.raises(BadRequest, match="is not empty: nodes would be used"):
        create_store(path, SCHEMA)
    assert {name: data for name, data in tree(path).items() if not name.startswith("__locks")} == {
        "nodes/cluster.yaml": b"ours"
    }


def test_init_beside_other_files_is_fine(path):
    Path(path).mkdir()
    (Path(path) / "people.jsonl").write_text("{}")
    create_store(path, SCHEMA)
    assert (Path(path) / "people.jsonl").read_text() == "{}"


def test_a_schema_that_does_not_compile_makes_nothing(path):
    with pytest.raises(SchemaError):
        create_store(path, "node Person {")
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "failpoint", ["init.marked", "init.schema", "init.table", "init.manifest", "init.log", "init.ref"]
)
def test_killed_in_the_middle_there_is_no_graph_or_a_whole_one(path, failpoint):
    killed(start_child(INIT, path, failpoints=f"{failpoint}=kill"))
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
        assert not any("Knows" in str(data) for name, data in tree(path).items() if name.startswith("_schema"))
    add_people(store, "ada")
    assert people(open_store(path)) == ["ada"]


def test_of_processes_that_init_one_path_at_once_exactly_one_succeeds(anywhere):
    code = """
from omnigraph.errors import BadRequest
try:
    create_store(sys.argv[1], SCHEMA)
    print("made")
except BadRequest:
    print("refused")
"""
    children = [start_child(code, anywhere) for _ in range(3)]
    said = sorted(finish(child).strip() for child in children)
    assert said == ["made", "refused", "refused"]
    store = open_store(anywhere)
    add_people(store, "ada")
    assert people(store) == ["ada"]


def test_what_init_makes_is_listed(path):
    create_store(path, SCHEMA)
    made = {entry.name for entry in Path(path).iterdir()}
    assert made - {"__locks"} <= set(OWN_NAMES)
