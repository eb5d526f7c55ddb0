"""What Lance does with branches of a table."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceDataset
from lance.fragment import write_fragments

from omnigraph.storage.handles.base_paths import with_bases_at
from omnigraph.storage.handles.manifest_files import relocated
from tests.guards.conftest import NewTable, append_of, commit, ids


def test_a_branch_starts_exactly_keeps_the_number_and_is_a_clone(new_table: NewTable) -> None:
    base = new_table("a")
    commit(base, append_of(base, "b"))
    branch = base.create_branch("f-1", (None, 1))
    assert (branch.version, branch.count_rows()) == (1, 1)
    assert type(branch.read_transaction(1).operation).__name__ == "Clone"


def test_a_branch_opens_and_commits_by_its_directory(new_table: NewTable) -> None:
    base = new_table("a")
    base.create_branch("f-1", (None, 1))
    line = lance.dataset(f"{base.uri}/tree/f-1", version=1)
    landed = commit(line, append_of(line, "b"))
    assert (landed.version, landed.count_rows()) == (2, 2)
    assert base.checkout_version(("f-1", None)).count_rows() == 2
    assert ids(base) == ["a"]
    line.create_branch("f-2", ("f-1", 1))
    assert base.branches.list()["f-2"]["parent_branch"] == "f-1"


def test_a_branch_with_children_cannot_be_deleted(new_table: NewTable) -> None:
    base = new_table("a")
    base.create_branch("f-1", (None, 1)).create_branch("f-2", ("f-1", 1))
    with pytest.raises(OSError, match="Ref conflict"):
        base.branches.delete("f-1")


def test_deleting_a_missing_branch_is_a_value_error(new_table: NewTable) -> None:
    with pytest.raises(ValueError, match="Ref not found"):
        new_table("a").branches.delete("f-1")


def test_odd_names_are_refused(new_table: NewTable) -> None:
    with pytest.raises(OSError, match="Ref is invalid"):
        new_table("a").create_branch("a@b", (None, 1))


def test_a_branch_directory_without_a_reference_blocks_its_name_for_ever(new_table: NewTable) -> None:
    """Hence names of forks are unique: this is what a crash between Lance's two steps leaves."""
    base = new_table("a")
    base.create_branch("f-1", (None, 1))
    reference = Path(base.uri, "_refs", "branches", "f-1.json")
    assert reference.is_file()
    reference.unlink()
    again = lance.dataset(base.uri)
    assert again.branches.list() == {}
    with pytest.raises(OSError):
        again.create_branch("f-1", (None, 1))
    with pytest.raises(ValueError, match="Ref not found"):
        again.branches.delete("f-1")
    assert lance.dataset(f"{base.uri}/tree/f-1").count_rows() == 1


def test_forks_refer_to_their_parent_by_absolute_path(new_table: NewTable, tmp_path: Path) -> None:
    """So a graph with forks on local disk cannot be moved; if this fails, Lance can do it by now."""
    base = new_table("a")
    base.create_branch("f-1", (None, 1))
    moved = tmp_path / "elsewhere"
    shutil.move(base.uri, moved)
    assert lance.dataset(str(moved)).count_rows() == 1
    with pytest.raises(Exception, match=r"(?i)not found|no such"):
        lance.dataset(f"{moved}/tree/f-1").to_table()


def test_a_local_path_with_other_characters_needs_an_address_of_another_kind(tmp_path: Path) -> None:
    """Why `Root.child` gives Lance `file-object-store://` there: a plain path leaves an encoded directory beside it."""
    rows = pa.table({"id": ["a"]})
    plain, other = tmp_path / "é", tmp_path / "ü"
    lance.write_dataset(rows, str(plain)).create_branch("f-1")
    lance.write_dataset(rows, f"file-object-store://{quote(str(other))}").create_branch("f-1")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["%C3%A9", "é", "ü"])


def test_below_a_question_mark_lance_does_not_find_its_own_branches(tmp_path: Path) -> None:
    """Why `storage.cloned_forks` exists: when this fails, Lance has mended it, and the module can go."""
    address = f"file-object-store://{quote(str(tmp_path / 'a?b'))}"
    lance.write_dataset(pa.table({"id": ["a"]}), address).create_branch("f-1")
    branch = lance.dataset(f"{address}/tree/f-1")
    with pytest.raises(ValueError, match="root location of branch"):
        write_fragments(pa.table({"id": ["b"]}), branch)
    with pytest.raises(OSError, match="root location of branch"):
        branch.create_branch("f-2")


def test_a_branch_names_its_parents_and_can_be_opened_with_other_names_for_them(
    new_table: NewTable, tmp_path: Path
) -> None:
    """A moved graph rests on this: the description of a version can be given, and commits keep what it says."""
    base = new_table("a")
    base.create_branch("f-1", (None, 1))
    moved = str(tmp_path / "elsewhere" / Path(base.uri).name)
    shutil.move(base.uri, moved)
    line = lance.dataset(f"{moved}/tree/f-1")
    (parent,) = line.base_paths().values()
    assert (parent.name, parent.path) == (None, base.uri)
    with pytest.raises(Exception, match="Not found"):
        line.to_table()
    description = with_bases_at(line._ds.serialized_manifest(), moved, "f-1")
    here = LanceDataset(line.uri, version=1, serialized_manifest=description)
    assert here.to_table()["id"].to_pylist() == ["a"]
    commit(here, append_of(here, "b"))
    again = lance.dataset(line.uri)
    assert [one.path for one in again.base_paths().values()] == [moved]
    assert sorted(ids(again)) == ["a", "b"]
    older = next(Path(moved, "tree", "f-1", "_versions").glob(f"{2**64 - 2}.manifest"))
    older.write_bytes(relocated(older.read_bytes(), line.uri, "f-1") or b"")
    assert lance.dataset(line.uri, version=1).to_table()["id"].to_pylist() == ["a"]
