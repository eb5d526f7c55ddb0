"""Schema apply: every supported step with data, in one publish; refusals leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import Busy, Conflict, ValidationFailed
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.ledger.values import MAIN, Snapshot, WriterKind
from omnigraph.maintain.optimize.optimize import optimize
from omnigraph.storage.values import TableVersion
from omnigraph.write.schema.schema_apply import MigrationRefused, apply_schema, plan_schema

PEOPLE = """
node Person {
    slug: String @key
    age: I32?
    city: String?
}
edge Knows: Person -> Person
"""


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    store = create_store(tmp_path / "g", PEOPLE)
    rows = {"id": ["a", "b"], "slug": ["a", "b"], "age": pa.array([1, 200], pa.int32()), "city": ["x", None]}
    append(store, "node:Person", pa.table(rows))
    return store


def append(store: GraphStore, table_key: str, rows: pa.Table, branch: str = MAIN) -> None:
    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        pin = base.pin(table_key)
        staged = store.tables.stage_append(session.line(pin), rows)
        return session.intent(WriterKind.LOAD, base, [session.table_write(pin, staged)])

    run_write(store, branch, prepare)


def rows_of(store: GraphStore, table_key: str, at: Any = None) -> list[dict[str, Any]]:
    pin = store.snapshot(at).pin(table_key)
    return store.tables.scan_table(TableVersion(pin.location, pin.lance_branch, pin.version)).to_pylist()


def test_all_steps_in_one_commit_with_their_data(store: GraphStore) -> None:
    before = store.snapshot()
    desired = """
    node Human @rename_from("Person") {
        slug: String @key
        years: I32? @rename_from("age")
        tag: String @default("new")
        joined: Date? @default("2026-01-02")
        note: String? @index
        @range(years, 0..300)
    }
    node Cat { name: String }
    edge Knows: Human -> Human { since: Date? }
    """
    result = apply_schema(store, desired, actor="ada")
    assert result.commit is not None
    assert result.commit.kind is WriterKind.SCHEMA_APPLY
    assert result.commit.actor_id == "ada"
    assert result.commit.parent_commit_id == before.head.graph_commit_id
    assert store.snapshot().manifest_version == before.manifest_version + 1
    rows = rows_of(store, "node:Human")
    assert [(r["id"], r["years"], r["tag"], str(r["joined"]), r["note"]) for r in rows] == [
        ("a", 1, "new", "2026-01-02", None),
        ("b", 200, "new", "2026-01-02", None),
    ]
    assert "city" not in rows[0]
    assert rows_of(store, "node:Cat") == []
    assert sorted(store.snapshot().tables) == ["edge:Knows", "node:Cat", "node:Human"]


def test_an_older_snapshot_shows_the_old_names_and_soft_drops(store: GraphStore) -> None:
    old = store.snapshot()
    apply_schema(store, 'node Human @rename_from("Person") { slug: String @key\n years: I32? @rename_from("age") }')
    seen = store.snapshot(old.head.graph_commit_id)
    assert sorted(seen.tables) == ["edge:Knows", "node:Person"]
    assert [p.name for p in store.catalog(seen.schema_digest).nodes[0].properties] == ["slug", "age", "city"]
    rows = rows_of(store, "node:Person", old.head.graph_commit_id)
    assert [(r["age"], r["city"]) for r in rows] == [(1, "x"), (200, None)]


def test_adding_a_nullable_property_writes_no_data_file(store: GraphStore, tmp_path: Path) -> None:
    data = tmp_path / "g" / store.snapshot().pin("node:Person").location / "data"
    before = sorted(p.name for p in data.iterdir())
    apply_schema(store, PEOPLE.replace("city: String?", "city: String?\n nick: String? @index"))
    assert sorted(p.name for p in data.iterdir()) == before


def test_declaring_an_index_writes_neither_data_nor_an_index(store: GraphStore, tmp_path: Path) -> None:
    place = tmp_path / "g" / store.snapshot().pin("node:Person").location

    def files() -> list[Path]:
        return sorted(p for below in ("data", "_indices") for p in (place / below).rglob("*"))

    before = files()
    apply_schema(store, PEOPLE.replace("city: String?", "city: String? @index"))
    assert files() == before
    assert store.catalog(store.snapshot().schema_digest).nodes[0].by_name["city"].indexed


def test_applying_the_accepted_schema_publishes_nothing(store: GraphStore) -> None:
    before = store.snapshot()
    result = apply_schema(store, PEOPLE)
    assert result.commit is None
    assert result.plan.steps == ()
    assert store.snapshot() == before


def test_a_constraint_that_the_data_breaks_is_refused_with_the_rows(store: GraphStore) -> None:
    before = store.snapshot()
    with pytest.raises(ValidationFailed) as refused:
        apply_schema(store, PEOPLE.replace("city: String?", "city: String?\n @range(age, 0..150)"))
    assert refused.value.counts == {"range": 1}
    assert refused.value.violations[0].row_id == "b"
    assert refused.value.details["codes"] == ["OG-AC-102"]
    assert 'node:Person "b": `age` must lie in 0..150, not 200' in str(refused.value)
    assert store.snapshot() == before


def test_unique_and_cardinality_are_checked_against_the_data(store: GraphStore) -> None:
    append(store, "edge:Knows", pa.table({"id": ["1", "2"], "src": ["a", "a"], "dst": ["b", "b"]}))
    with pytest.raises(ValidationFailed) as refused:
        apply_schema(store, PEOPLE.replace("Person -> Person", "Person -> Person @card(0..1) { @unique(src, dst) }"))
    assert refused.value.counts == {"unique": 1, "cardinality": 1}
    assert refused.value.details["codes"] == ["OG-AC-101", "OG-AC-104"]
    apply_schema(store, PEOPLE.replace("Person -> Person", "Person -> Person @card(0..2)"))


@pytest.mark.parametrize("name", ["n", "first"])
def test_unique_is_checked_whatever_the_property_is_called(tmp_path: Path, name: str) -> None:
    store = create_store(tmp_path / "named", f"node A {{ {name}: I32? }}")
    append(store, "node:A", pa.table({"id": ["a", "b"], name: pa.array([1, 1], pa.int32())}))
    with pytest.raises(ValidationFailed) as refused:
        apply_schema(store, f"node A {{ {name}: I32? @unique }}")
    assert refused.value.counts == {"unique": 1}
    assert refused.value.violations[0].row_id == "b"


@pytest.mark.parametrize(
    ("added", "broken"),
    [
        ("level: I32 @default(3)\n @range(level, 1..5)", 0),
        ('tag: String? @default("xy")\n @check(tag, "[a-z]+")', 0),
        ('tag: String @default("x")\n @unique(slug, tag)', 0),
        ('tag: String @default("x")\n @unique(city, tag)', 1),
        ('tag: String @default("x") @unique', 2),
        ("tag: String? @unique", 0),
    ],
)
def test_a_constraint_on_a_property_that_is_added_with_it(store: GraphStore, added: str, broken: int) -> None:
    append(
        store, "node:Person", pa.table({"id": ["c"], "slug": ["c"], "age": pa.array([1], pa.int32()), "city": ["x"]})
    )
    desired = PEOPLE.replace("city: String?", f"city: String?\n{added}")
    if not broken:
        assert apply_schema(store, desired).commit is not None
        return
    with pytest.raises(ValidationFailed) as refused:
        apply_schema(store, desired)
    assert refused.value.counts == {"unique": broken}


def test_an_unsupported_change_names_its_code_and_changes_nothing(store: GraphStore) -> None:
    before = store.snapshot()
    with pytest.raises(MigrationRefused) as refused:
        apply_schema(store, PEOPLE.replace("age: I32?", "age: String?"))
    assert refused.value.details["codes"] == ["OG-MF-106"]
    assert store.snapshot() == before
    assert not plan_schema(store, PEOPLE.replace("age: I32?", "age: String?")).supported


def test_branches_keep_their_schema(store: GraphStore) -> None:
    create_branch(store, "review/1")
    apply_schema(store, PEOPLE + "node Cat { name: String }")
    apply_schema(store, PEOPLE.replace("age", "years").replace("I32?", 'I64? @rename_from("age")'), branch="review/1")
    assert sorted(store.snapshot().tables) == ["edge:Knows", "node:Cat", "node:Person"]
    assert sorted(store.snapshot("review/1").tables) == ["edge:Knows", "node:Person"]
    assert [row["age"] for row in rows_of(store, "node:Person")] == [1, 200]
    assert [row["years"] for row in rows_of(store, "node:Person", "review/1")] == [1, 200]
    assert "Cat" in (store.objects.get("_schema.pg")[0]).decode()


def test_ids_of_one_branch_are_given_out_on_no_other(store: GraphStore) -> None:
    create_branch(store, "b")
    added = []
    for branch, text in ((MAIN, "nick: String?"), ("b", "mood: String?"), (MAIN, "nick: String?\n mail: String?")):
        apply_schema(store, PEOPLE.replace("city: String?", f"city: String?\n{text}"), branch=branch)
        person = store.catalog(store.snapshot(branch).schema_digest).nodes[0]
        added.append(person.properties[-1].id)
    assert len(set(added)) == 3
    before = store.snapshot("b")
    apply_schema(store, store.schemas.get(before.schema_digest)[0], branch="b")
    assert store.snapshot("b") == before


def test_a_hard_drop_of_what_another_branch_has_is_refused(store: GraphStore) -> None:
    create_branch(store, "b")
    for branch, other in ((MAIN, "b"), ("b", MAIN)):
        with pytest.raises(Conflict, match=f"branch `{other}` has node:Person too"):
            apply_schema(store, PEOPLE.replace("city: String?", ""), branch=branch, allow_data_loss=True)
    apply_schema(store, PEOPLE.replace("city: String?", ""), branch="b")
    assert [row["city"] for row in rows_of(store, "node:Person")] == ["x", None]


@pytest.mark.parametrize("index", [False, True])
def test_wider_columns_keep_their_values_ids_and_place_among_older_states(tmp_path: Path, index: bool) -> None:
    schema = "node A { k: I32 @key\n u: U32? @unique\n f: F32?\n n: I64? }"
    store = create_store(tmp_path / "wide", schema.replace("F32?", "F32? @index") if index else schema)
    columns = {"k": pa.int32(), "u": pa.uint32(), "f": pa.float32(), "n": pa.int64()}
    values = {"k": [1, -2], "u": [2**32 - 1, None], "f": [0.1, None], "n": [2**53, None]}
    rows = {name: pa.array(values[name], type_) for name, type_ in columns.items()}
    append(store, "node:A", pa.table({"id": ["1", "-2"], **rows}))
    if index:
        optimize(store)
    old = store.snapshot().head.graph_commit_id
    apply_schema(store, 'node A { k: I64 @key\n v: I64? @unique @rename_from("u")\n f: F64?\n n: F64? }')
    found = rows_of(store, "node:A")
    assert [row["id"] for row in found] == ["1", "-2"]
    assert [[row[name] for row in found] for name in ("k", "v", "f", "n")] == list(values.values())
    assert [row["u"] for row in rows_of(store, "node:A", old)] == values["u"]


def test_a_number_that_would_not_be_kept_refuses_the_wider_type(tmp_path: Path) -> None:
    store = create_store(tmp_path / "exact", "node A { n: I64?\n u: U64? }")
    values = {"n": pa.array([2**53 + 1, 2**60], pa.int64()), "u": pa.array([2**64 - 1, None], pa.uint64())}
    append(store, "node:A", pa.table({"id": ["a", "b"], **values}))
    for wider in ("n: F64?\n u: U64?", "n: I64?\n u: F64?"):
        with pytest.raises(MigrationRefused, match="1 row has a value that it cannot hold exactly") as refused:
            apply_schema(store, f"node A {{ {wider} }}")
        assert refused.value.details["codes"] == ["OG-MF-106"]


def test_a_property_becomes_required_when_every_row_has_a_value(store: GraphStore) -> None:
    with pytest.raises(MigrationRefused, match="1 row has no value") as refused:
        apply_schema(store, PEOPLE.replace("city: String?", "city: String"))
    assert refused.value.details["codes"] == ["OG-MF-104"]
    apply_schema(store, PEOPLE.replace("age: I32?", 'years: I32 @rename_from("age")'))
    assert not store.tables.schema(table_of(store.snapshot().pin("node:Person"))).field("years").nullable


def test_what_was_dropped_softly_can_be_added_again_as_something_new(store: GraphStore) -> None:
    old = store.snapshot().head.graph_commit_id
    first = store.catalog(store.snapshot().schema_digest)
    apply_schema(store, PEOPLE.replace("city: String?", "").replace("edge Knows: Person -> Person", ""))
    apply_schema(store, PEOPLE.replace("city: String?", "city: I32?"))
    again = store.catalog(store.snapshot().schema_digest)
    assert [row["city"] for row in rows_of(store, "node:Person")] == [None, None]
    assert rows_of(store, "edge:Knows") == []
    assert [row["city"] for row in rows_of(store, "node:Person", old)] == ["x", None]
    assert again.edges[0].id != first.edges[0].id
    assert again.nodes[0].by_name["city"].id != first.nodes[0].by_name["city"].id


def test_one_apply_at_a_time(store: GraphStore) -> None:
    with hold_schema_lock(store, "other"), pytest.raises(Busy, match="another schema apply"):
        apply_schema(store, PEOPLE + "node Cat { name: String }")
    apply_schema(store, PEOPLE + "node Cat { name: String }")


def test_a_hard_drop_removes_history_and_a_tag_keeps_it(store: GraphStore) -> None:
    old = store.snapshot()
    store.refs.create_tag(TagRef("keep", old.head.graph_commit_id))
    with pytest.raises(Conflict, match="tag `keep`"):
        apply_schema(store, "node Cat { name: String }", allow_data_loss=True)
    store.refs.delete_tag("keep")
    apply_schema(store, "node Cat { name: String }", allow_data_loss=True)
    assert not store.tables.exists(old.pin("node:Person").location)


def test_a_hard_drop_of_a_property_removes_old_versions_of_its_table(store: GraphStore) -> None:
    location = store.snapshot().pin("node:Person").location
    apply_schema(store, PEOPLE.replace("city: String?", ""), allow_data_loss=True)
    assert [v.version for v in store.tables.versions(location)] == [store.snapshot().pin("node:Person").version]


def test_writes_and_reopening_work_afterwards(store: GraphStore, tmp_path: Path) -> None:
    apply_schema(store, PEOPLE.replace("city: String?", "city: String?\n nick: String?"))
    again = open_store(tmp_path / "g")
    append(
        again,
        "node:Person",
        pa.table({"id": ["c"], "slug": ["c"], "age": pa.array([3], pa.int32()), "city": ["y"], "nick": ["z"]}),
    )
    assert [r["nick"] for r in rows_of(again, "node:Person")] == [None, None, "z"]


def test_a_leftover_of_a_crashed_apply_does_not_block_the_next(store: GraphStore) -> None:
    leftover = f"nodes/n{store.catalog(store.snapshot().schema_digest).next_id}"
    store.tables.create(leftover, pa.schema([("id", pa.utf8())]), rows=pa.table({"id": ["ghost"]}))
    apply_schema(store, PEOPLE + "node Cat { name: String }")
    assert rows_of(store, "node:Cat") == []
