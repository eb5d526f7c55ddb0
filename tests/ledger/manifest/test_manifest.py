"""The manifest: one current row per table, one head row, states that never tear, the stamp checked."""

import pytest

from omnigraph.errors import BadRequest, Conflict, InternalError
from omnigraph.ledger.branches import branches
from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.manifest.manifest_rows import (
    HEAD_ID,
    KEY_COLUMN,
    MANIFEST,
    SCHEMA,
    files_of,
    head_of,
    pins_of,
    table_row,
)
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.manifest.stamp import CURRENT, STAMP_KEY, read_stamp
from omnigraph.ledger.store import open_store
from omnigraph.ledger.values import TablePin
from omnigraph.storage.lance_errors import TableNotFound
from tests.ledger.graphs import KNOWS, PERSON, add_people, counted, draft, moved, publish_move
from tests.ledger.places import is_on_s3


def rows(store, lance_branch=None):
    return store.tables.scan_table(store.tables.head(MANIFEST, lance_branch)).to_pylist()


def stamped(store, stamp, lance_branch=None):
    head = store.tables.head(MANIFEST, lance_branch)
    store.tables.commit_staged(store.tables.stage_schema_metadata(head, {STAMP_KEY: str(stamp)}), "test")


def test_there_is_one_current_row_per_table_and_one_head_whatever_the_history(graph, path):
    publishes = 4 if is_on_s3(path) else 12
    for _ in range(publishes):
        publish_move(graph)
    publish_move(graph, table_key=KNOWS)
    found = rows(graph)
    assert sorted(row[KEY_COLUMN] for row in found) == sorted({row[KEY_COLUMN] for row in found})
    assert [row["object_type"] for row in found].count("graph_head") == 1
    assert [row["object_type"] for row in found].count("table_version") == 2
    assert {row["table_key"]: row["table_version"] for row in found if row["table_key"]} == {
        PERSON: publishes + 1,
        KNOWS: 2,
    }


def test_a_new_manifest_has_the_stamp_and_the_primary_key(graph):
    schema = graph.tables.schema(graph.tables.head(MANIFEST))
    assert read_stamp(schema) == CURRENT == 4
    assert schema.field(KEY_COLUMN).metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert schema.names == SCHEMA.names


def test_a_state_read_from_the_store_equals_the_one_that_was_published(graph, path):
    publish_move(graph)
    published = graph.manifest.read(graph.branch("main"))
    other = open_store(path, read_only=True)
    read = other.manifest.read(other.branch("main"))
    assert (read.head, read.tables, read.table) == (published.head, published.tables, published.table)
    assert read.head.manifest_version == read.version


def test_a_state_is_told_from_one_that_is_known_as_it_would_be_read_whole(graph, path):
    """Whatever was published between: moves, new tables, names, tombstones; forwards, and back in time."""
    other = open_store(path, read_only=True)
    main = graph.branch("main")
    first = other.manifest.read(main).version

    def compare(version=None):
        told = other.manifest.read(main, version)
        whole = Manifest(graph.tables).read(main, version)
        assert (told.head, told.tables) == (whole.head, whole.tables)
        by_key = [sorted(state.rows, key=lambda row: row[KEY_COLUMN]) for state in (told, whole)]
        assert by_key[0] == by_key[1]

    base = graph.snapshot()
    new = moved(base.pin(PERSON), table_key="node:City", type_id="n9", location="nodes/n9", version=1)
    for change in (
        lambda: publish_move(graph),
        lambda: [publish_move(graph, table_key=KNOWS), publish_move(graph), publish_move(graph)],
        lambda: publish(graph, main, Publication(draft(base), registered=(new,))),
        lambda: publish(graph, main, Publication(draft(base), renamed=(("node:City", "node:Town"),))),
        lambda: publish(graph, main, Publication(draft(base), tombstones=("node:Town",))),
    ):
        change()
        compare()
    for version in range(other.manifest.read(main).version, first, -1):
        other.manifest.forget()
        other.manifest.read(main)
        compare(version)


def test_only_what_was_published_since_is_scanned(graph, path, monkeypatch):
    other = open_store(path, read_only=True)
    main = graph.branch("main")
    publish_move(graph, table_key=KNOWS)
    other.manifest.read(main)
    publish_move(graph)
    scanned = []
    scan = other.tables.scan_table
    monkeypatch.setattr(
        other.tables, "scan_table", lambda *args, **options: scanned.append(scan(*args, **options)) or scanned[-1]
    )
    assert other.manifest.read(main).tables == graph.snapshot().tables
    assert [table.num_rows for table in scanned] == [2], "the head and the table that moved"


def test_a_row_that_was_deleted_without_a_successor_is_not_told(graph, path):
    other = open_store(path, read_only=True)
    main = graph.branch("main")
    publish_move(graph, table_key=KNOWS)
    other.manifest.read(main)
    key = next(row[KEY_COLUMN] for row in rows(graph) if row["table_key"] == PERSON)
    head = graph.tables.head(MANIFEST)
    graph.tables.commit_staged(graph.tables.stage_delete(head, [key], key=KEY_COLUMN), "test")
    assert sorted(other.manifest.read(main).tables) == [KNOWS]


def test_the_newest_entry_is_the_one_last_published_on_this_branch(graph):
    """Version numbers of different Lance branches are never compared with each other."""
    for _ in range(5):
        publish_move(graph)
    branches.create_branch(graph, "b")
    base = graph.snapshot("b")
    fork = moved(base.pin(PERSON), base.branch.incarnation, lance_branch="f-x", version=2)
    publish(graph, base.branch, Publication(draft(base), updates=(fork,)))
    publish_move(graph)
    assert graph.snapshot("b").pin(PERSON) == fork
    assert graph.snapshot().pin(PERSON).version == 7


def test_register_rename_and_tombstone(graph):
    base = graph.snapshot()
    new = moved(base.pin(PERSON), table_key="node:City", type_id="n9", location="nodes/n9", version=1)
    publish(graph, base.branch, Publication(draft(base), registered=(new,)))
    assert graph.snapshot().pin("node:City") == new
    publish(graph, base.branch, Publication(draft(base), renamed=(("node:City", "node:Town"),)))
    assert "node:City" not in graph.snapshot().tables
    assert graph.snapshot().pin("node:Town").type_id == "n9"
    publish(graph, base.branch, Publication(draft(base), tombstones=("node:Town",)))
    assert sorted(graph.snapshot().tables) == [KNOWS, PERSON]
    assert [row["object_type"] for row in rows(graph)].count("table_tombstone") == 1
    with pytest.raises(Conflict, match="node:Town is not a table"):
        publish(graph, base.branch, Publication(draft(base), tombstones=("node:Town",)))


def test_a_schema_digest_is_published_with_its_tables(graph):
    base = graph.snapshot()
    digest = graph.schemas.put("node City { name: String @key }", graph.catalog(base.schema_digest))
    publish(graph, base.branch, Publication(draft(base), updates=(moved(base.pin(PERSON)),), schema_digest=digest))
    assert graph.snapshot().schema_digest == digest
    assert graph.snapshot(base.head.graph_commit_id).schema_digest == base.schema_digest
    publish_move(graph)
    assert graph.snapshot().schema_digest == digest, "a publish that names no schema keeps it"


def test_every_publish_checks_the_stamp_again(graph):
    stamped(graph, 5)
    with pytest.raises(BadRequest, match="upgrade omnigraph first"):
        publish_move(graph)
    stamped(graph, 3)
    with pytest.raises((Conflict, TableNotFound)):
        publish_move(graph)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_stamp_refuses_any_open(graph, path, read_only):
    stamped(graph, 5)
    with pytest.raises(BadRequest, match=r"internal schema version 5 .* upgrade omnigraph first"):
        open_store(path, read_only=read_only)


def test_a_branch_line_of_a_newer_stamp_is_refused_too(graph, path):
    ref = branches.create_branch(graph, "b")
    stamped(graph, 9, ref.manifest_branch)
    with pytest.raises(BadRequest, match="upgrade omnigraph first"):
        open_store(path, read_only=True).snapshot("b")


def test_states_are_cached_by_line_and_version(graph):
    ref = graph.branch("main")
    add_people(graph, "ada")
    first = graph.manifest.read(ref)
    with counted(graph) as calls:
        assert graph.manifest.read(ref, first.version) is first
        assert not calls
        assert graph.manifest.read(ref) is first
        assert not calls, "nothing was published since"
    add_people(graph, "bob")
    assert graph.manifest.read(ref).version == first.version + 1


def test_a_state_that_a_publish_remembers_is_the_one_that_a_reader_finds(graph):
    """Row ids and addresses included: the next publish rewrites rows where the remembered state says they lie."""

    def as_found(state):
        return sorted((row["object_id"], row["_rowid"], row["_rowaddr"], row["table_version"]) for row in state.rows)

    for round_ in range(4):
        publish_move(graph, table_key=PERSON if round_ % 2 else KNOWS)
        remembered = graph.manifest.read(graph.snapshot().branch)
        found = Manifest(graph.tables).read(graph.snapshot().branch)
        assert as_found(remembered) == as_found(found)
        assert remembered.head == found.head


@pytest.mark.parametrize("name", ["table_key", "location", "table_version", "row_count", "metadata"])
def test_a_row_of_a_table_that_has_lost_a_column_is_told_as_damage(name: str) -> None:
    """A flipped bit in a version's description can make Lance read a column as null."""
    pin = TablePin("node:Person", "n1", "nodes/n1", None, 3, 7, "main")
    row = table_row(pin)
    assert pins_of([row]) == {"node:Person": pin}
    with pytest.raises(InternalError, match=f"`table:n1` of `__manifest` has no `{name}`"):
        pins_of([{**row, name: None}])


@pytest.mark.parametrize("metadata", [None, "{"])
def test_a_head_that_has_lost_its_commit_is_told_as_damage(metadata: str | None) -> None:
    row = {**dict.fromkeys(SCHEMA.names), "object_id": HEAD_ID, "object_type": HEAD_ID, "metadata": metadata}
    for read in (lambda rows: head_of(rows, "a version"), files_of):
        with pytest.raises(InternalError, match="has no `metadata`"):
            read([row])
