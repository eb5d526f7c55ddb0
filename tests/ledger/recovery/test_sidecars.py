"""Sidecars: JSON round trip, loud damage, take-over by put-if-match."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.config import SIDECAR_SCHEMA_VERSION
from omnigraph.errors import LeaseLost, RecoveryRequired
from omnigraph.ledger.recovery.sidecars import (
    RecoveredTable,
    Resolution,
    Sidecar,
    SidecarOwner,
    Sidecars,
    SidecarTable,
    path_of,
)
from omnigraph.ledger.values import TablePin, WriterKind
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root

SIDECAR_KINDS = [k for k in WriterKind if k not in (WriterKind.INIT, WriterKind.RECOVERY, WriterKind.REPAIR)]
texts = st.text(max_size=8)
maybe = st.none() | texts
pins = st.builds(TablePin, texts, texts, texts, maybe, st.integers(0, 2**40), st.integers(0, 2**40), texts)
tables = st.builds(
    SidecarTable,
    texts,
    texts,
    texts,
    maybe,
    st.integers(0, 2**40),
    st.none() | pins,
    st.lists(texts, max_size=3).map(tuple),
    st.integers(0, 2**40),
)
versions = st.none() | st.integers(0, 2**40)
resolutions = st.builds(
    Resolution, texts, texts, st.lists(st.builds(RecoveredTable, texts, versions, versions), max_size=2).map(tuple)
)
sidecars = st.builds(
    Sidecar,
    operation_id=texts,
    kind=st.sampled_from(SIDECAR_KINDS),
    branch=texts,
    incarnation=texts,
    actor_id=maybe,
    graph_commit_id=texts,
    parent_commit_id=maybe,
    merged_parent_commit_id=maybe,
    started_at=st.integers(0, 2**52),
    owner=st.builds(SidecarOwner, texts, st.integers(0, 2**22), maybe, texts),
    base_schema_digest=texts,
    tables=st.lists(tables, max_size=3).map(tuple),
    reads=st.lists(st.tuples(texts, st.none() | pins), max_size=2).map(tuple),
    registered=st.lists(pins, max_size=2).map(tuple),
    repinned=st.lists(pins, max_size=2).map(tuple),
    renamed=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    tombstones=st.lists(texts, max_size=2).map(tuple),
    schema_digest=maybe,
    changes_data=st.booleans(),
    resolution=st.none() | resolutions,
)

numbers = itertools.count()


def example(operation_id: str = "01JZ0000000000000000000000") -> Sidecar:
    pin = TablePin("node:Person", "t1", "nodes/t1", None, 4, 10, "inc")
    return Sidecar(
        operation_id=operation_id,
        kind=WriterKind.MUTATION,
        branch="main",
        incarnation="inc",
        actor_id="act-ada",
        graph_commit_id="c1",
        parent_commit_id="c0",
        merged_parent_commit_id=None,
        started_at=1,
        owner=SidecarOwner.here("lease"),
        base_schema_digest="d0",
        tables=(SidecarTable("node:Person", "t1", "nodes/t1", None, 4, pin, ("tx1",), 11),),
    )


@pytest.fixture
def objects(path: str) -> ObjectStore:
    return open_objects(parse_root(path))


@settings(max_examples=150, deadline=None)
@given(sidecars)
def test_json_round_trip(sidecar: Sidecar) -> None:
    assert Sidecar.from_json(sidecar.to_json(), "x") == sidecar


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"{}", b'{"schema_version": 1}', b'{"schema_version": "1"}']
)
def test_corrupt_sidecar_is_loud_and_names_the_file(data: bytes) -> None:
    with pytest.raises(RecoveryRequired, match=r"__recovery/abc\.json.*damaged") as caught:
        Sidecar.from_json(data, "abc")
    assert caught.value.details["path"] == "__recovery/abc.json"


def test_every_missing_field_is_damage() -> None:
    content = orjson.loads(example().to_json())
    for field in content:
        shorter = {key: value for key, value in content.items() if key != field}
        with pytest.raises(RecoveryRequired):
            Sidecar.from_json(orjson.dumps(shorter), "abc")


def test_newer_schema_version_is_loud_and_says_upgrade() -> None:
    content = orjson.loads(example().to_json()) | {"schema_version": SIDECAR_SCHEMA_VERSION + 1, "new": True}
    with pytest.raises(RecoveryRequired, match=r"__recovery/abc\.json.*upgrade omnigraph first"):
        Sidecar.from_json(orjson.dumps(content), "abc")


def test_put_list_get_delete(objects: ObjectStore) -> None:
    store = Sidecars(objects)
    assert store.list() == []
    later, earlier = example("01JZ0000000000000000000002"), example("01JZ0000000000000000000001")
    store.put(later)
    stored = store.put(earlier)
    assert store.list() == [earlier.operation_id, later.operation_id]
    assert store.get(earlier.operation_id) == stored
    store.delete(earlier.operation_id)
    store.delete(earlier.operation_id)
    assert store.get(earlier.operation_id) is None
    assert store.list() == [later.operation_id]


def test_listing_ignores_other_files(objects: ObjectStore) -> None:
    objects.put("__recovery/notes.txt", b"x")
    objects.put("__recovery_other/01JZ0000000000000000000002.json", b"x")
    assert Sidecars(objects).list() == []


def test_take_over_ends_the_former_owner(objects: ObjectStore) -> None:
    store = Sidecars(objects)
    ours = store.put(example())
    store.check_ours(ours)
    theirs = store.take_over(ours, SidecarOwner.here("other"))
    store.check_ours(theirs)
    with pytest.raises(LeaseLost, match="taken over"):
        store.check_ours(ours)
    with pytest.raises(LeaseLost):
        store.take_over(ours, SidecarOwner.here("third"))


def test_take_over_within_one_process_changes_the_token(objects: ObjectStore) -> None:
    store = Sidecars(objects)
    ours = store.put(example())
    again = store.take_over(ours, SidecarOwner.here(ours.sidecar.owner.lease))
    assert again.token != ours.token


def test_a_deleted_sidecar_is_not_ours_any_more(objects: ObjectStore) -> None:
    store = Sidecars(objects)
    ours = store.put(example())
    store.delete(ours.sidecar.operation_id)
    with pytest.raises(LeaseLost):
        store.check_ours(ours)
    with pytest.raises(LeaseLost):
        store.plan(ours, Resolution("RolledBack", "c9", ()))


def test_plan_is_kept(objects: ObjectStore) -> None:
    store = Sidecars(objects)
    ours = store.put(example())
    resolution = Resolution("RolledBack", "c9", (RecoveredTable("node:Person", 5, 4),))
    store.plan(ours, resolution)
    found = store.get(ours.sidecar.operation_id)
    assert found is not None
    assert found.sidecar.resolution == resolution


def test_coverage_is_by_table_key_and_lance_branch() -> None:
    sidecar = example()
    assert sidecar.covers("node:Person", None)
    assert not sidecar.covers("node:Person", "f-1")
    assert not sidecar.covers("node:Company", None)


def test_path() -> None:
    assert path_of("01JZ") == "__recovery/01JZ.json"
