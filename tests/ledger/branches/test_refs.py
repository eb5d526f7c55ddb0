"""Ref objects: names, exactly-one-winner, listing, deletion by incarnation, tags."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, InternalError, NotFound, StorageError
from omnigraph.failpoints import active
from omnigraph.ledger.branches import refs as refs_module
from omnigraph.ledger.branches.names import check_branch_name, check_tag_name, refuse_system_name
from omnigraph.ledger.branches.refs import Refs, TagRef, branch_path
from omnigraph.ledger.values import SCHEMA_APPLY_LOCK, BranchRef
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import wait_for


@pytest.fixture
def refs(path):
    return Refs(open_objects(parse_root(path)))


def ref(name, incarnation="i1"):
    return BranchRef(name, incarnation, f"b-{incarnation}", "main", "m", "c", 3, "act-ada", 17)


def test_a_ref_comes_back_as_it_went_in(refs):
    assert refs.create(ref("review/1"))
    assert refs.get("review/1") == ref("review/1")
    assert refs.get("review") is None


def test_review_and_review_1_live_side_by_side(refs):
    for name in ("review/1", "review", "a.b", "Ünïcode/x"):
        assert refs.create(ref(name))
    assert refs.names() == sorted(["review/1", "review", "a.b", "Ünïcode/x"])
    assert [found.name for found in refs.list()] == refs.names()
    refs.delete(ref("review"))
    assert refs.get("review/1") is not None


def test_exactly_one_of_many_creators_wins(refs):
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: refs.create(ref("b", f"i{i}")), range(8)))
    assert won.count(True) == 1
    assert refs.get("b").incarnation == f"i{won.index(True)}"


def test_a_put_whose_answer_was_lost_meets_its_own_object_and_wins(refs):
    assert refs.create(ref("b"))
    assert refs.create(ref("b")) is True
    assert refs.create(ref("b", "other")) is False


def test_deletion_spares_another_incarnation(refs):
    refs.create(ref("b", "new"))
    assert refs.delete(ref("b", "old")) is False
    assert refs.get("b").incarnation == "new"
    assert refs.delete(ref("b", "new")) is True
    assert refs.delete(ref("b", "new")) is False


def test_a_deletion_that_was_paused_spares_what_was_made_since(refs, tmp_path):
    """The look at the ref and its removal are two steps: a newer ref of the name may come between them."""
    refs.create(ref("b", "old"))
    gate, outcome = tmp_path / "gate", []
    with active("ref_delete.checked", f"pause:{gate}"):
        paused = threading.Thread(target=lambda: outcome.append(refs.delete(ref("b", "old"))))
        paused.start()
        wait_for(Path(f"{gate}.reached"))
        refs._objects.delete(branch_path("b"))
        assert refs.create(ref("b", "new"))
        gate.touch()
        paused.join(90)
    assert outcome == [False]
    assert refs.get("b").incarnation == "new"


def test_a_deleted_name_is_free_again_and_its_tombstone_goes_in_time(refs):
    for incarnation in ("one", "two"):
        assert refs.create(ref("b", incarnation))
        assert refs.delete(ref("b", incarnation))
        assert refs.names() == []
        assert refs.list() == []
    assert refs.sweep(0.0) == 0, "not while somebody may be about to take the name"
    assert refs.create(ref("b", "three"))
    assert refs.names() == ["b"]


def test_old_tombstones_are_swept_and_the_name_is_free_as_before(refs, monkeypatch):
    refs.create(ref("b", "one"))
    refs.delete(ref("b", "one"))
    refs.create_tag(TagRef("v1", "c"))
    refs.delete_tag("v1")
    monkeypatch.setattr(refs_module, "TOMBSTONE_SECONDS", -1.0)
    assert refs.sweep(-1.0) == (0 if refs._objects.root.is_local else 2)
    assert refs.create(ref("b", "two"))
    assert refs.create_tag(TagRef("v1", "c"))


def test_system_refs_are_not_listed(refs):
    refs.create(ref(SCHEMA_APPLY_LOCK))
    refs.create(ref("__run__7"))
    assert refs.names() == ["__run__7"], "`__run__` is an ordinary name"


def test_tags_have_a_space_of_their_own(refs):
    tag = TagRef("v1", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "act-ada", 5)
    assert refs.create_tag(tag)
    assert not refs.create_tag(TagRef("v1", "another", None, 6))
    assert refs.tag("v1") == tag
    assert refs.tags() == [tag]
    assert refs.names() == []
    assert refs.delete_tag("v1")
    assert not refs.delete_tag("v1")
    assert refs.tag("v1") is None


def test_a_damaged_or_newer_ref_object_is_loud(refs):
    refs._objects.put(branch_path("broken"), b"{")
    with pytest.raises(StorageError, match=r"broken\.json is damaged"):
        refs.get("broken")
    refs._objects.put(branch_path("later"), b'{"format": 99}')
    with pytest.raises(InternalError, match="upgrade omnigraph first"):
        refs.get("later")


@pytest.mark.parametrize("name", ["review", "review/1", "a-b_c.d", "x/y/z", "__run__1", "Ünïcode", "1", "release-2.0"])
def test_ordinary_names_are_allowed(name):
    check_branch_name(name, "branch create")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("a b", "holds ' '"),
        ("/a", "between two parts"),
        ("a//b", "between two parts"),
        ("a/", "between two parts"),
        ("a/../b", "no part may be"),
        ("..", "no part may be"),
        ("a\nb", "holds"),
        ("a@b", "holds '@'"),
        ("-a", "starts with `-`"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "mistaken for a commit id"),
        ("x" * 300, "too long"),
        ("e\u0301", "composed form"),
    ],
)
def test_invalid_names_are_refused_with_the_operation_and_the_reason(name, reason):
    with pytest.raises(BadRequest, match="branch create") as raised:
        check_branch_name(name, "branch create")
    assert reason in raised.value.message
    with pytest.raises(BadRequest, match="tag create"):
        check_tag_name(name, "tag create")


def test_main_and_system_names_are_refused():
    with pytest.raises(BadRequest, match="branch create: `main`"):
        check_branch_name("main", "branch create")
    with pytest.raises(BadRequest, match=f"branch merge: `{SCHEMA_APPLY_LOCK}`"):
        refuse_system_name(SCHEMA_APPLY_LOCK, "branch merge")
    with pytest.raises(BadRequest, match=SCHEMA_APPLY_LOCK):
        check_branch_name(SCHEMA_APPLY_LOCK, "branch create")
    with pytest.raises(BadRequest, match="mistaken for a manifest version"):
        check_tag_name("12", "tag create")


def test_a_ref_as_data_says_who_made_it_when_and_from_what():
    told = {"name": "b", "source_branch": "main", "source_commit": "c", "created_by": "act-ada", "created_at": 17}
    assert ref("b").to_json() == told
    assert BranchRef("main", "i", None).to_json()["created_at"] is None


@pytest.mark.parametrize("name", ["a" * 300, "≈" * 60, "x/" * 200 + "x"])
def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path, name: str) -> None:
    """Whoever asks for it made a mistake; the store did not fail."""
    with og.init(tmp_path / "g.omni", schema="node P { k: String @key }") as graph:
        for call in (
            lambda: graph.head(name),
            lambda: graph.snapshot(name),
            lambda: graph.mutate('query m() { insert P { k: "a" } }', branch=name),
            lambda: graph.branch_delete(name),
            lambda: graph.tags.delete(name),
            lambda: graph.merge(name),
        ):
            with pytest.raises(NotFound):
                call()
