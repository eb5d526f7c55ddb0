"""What the object-store library does on each kind of store."""

from __future__ import annotations

from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import LocalStore, MemoryStore


def test_put_if_match_is_missing_on_local_disk(tmp_path: Path) -> None:
    """Our own lock stands in for it; if this fails, the library has it by now."""
    store = LocalStore(prefix=tmp_path)
    token = obstore.put(store, "a", b"1")["e_tag"]
    with pytest.raises(NotImplementedError):
        obstore.put(store, "a", b"2", mode={"e_tag": token})


def test_put_if_absent_refuses_everywhere(tmp_path: Path) -> None:
    for store in (LocalStore(prefix=tmp_path), MemoryStore()):
        obstore.put(store, "a", b"1", mode="create")
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, "a", b"2", mode="create")


def test_put_if_match_in_memory() -> None:
    store = MemoryStore()
    token = obstore.put(store, "a", b"1")["e_tag"]
    obstore.put(store, "a", b"2", mode={"e_tag": token})
    with pytest.raises(PreconditionError):
        obstore.put(store, "a", b"3", mode={"e_tag": token})


def test_local_listings_leave_out_files_that_are_being_written(tmp_path: Path) -> None:
    store = LocalStore(prefix=tmp_path)
    obstore.put(store, "a", b"1")
    (tmp_path / "b#1").write_bytes(b"half")
    assert [entry["path"] for entry in obstore.list(store).collect()] == ["a"]


def test_a_prefix_is_whole_segments(tmp_path: Path) -> None:
    for store in (LocalStore(prefix=tmp_path), MemoryStore()):
        for path in ("a/b/1", "a/bc/2"):
            obstore.put(store, path, b"")
        assert [entry["path"] for entry in obstore.list(store, "a/b").collect()] == ["a/b/1"]


def test_missing_objects_are_file_not_found(tmp_path: Path) -> None:
    for store in (LocalStore(prefix=tmp_path), MemoryStore()):
        with pytest.raises(FileNotFoundError):
            obstore.get(store, "a")
