"""The contract of page 03 for small objects, the same for every kind of store."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.failpoints import active
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectExists, ObjectNotFound
from omnigraph.storage.objects.objects import PIECE_BYTES, TOMBSTONE, ObjectStore, open_objects
from omnigraph.storage.objects.os_locks import exclusive
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from tests.faults.harness import wait_for
from tests.storage.conftest import ON_S3
from tests.storage.processes import add_to_counter, try_without_permission

WITH_TOMBSTONES = ["memory", ON_S3]
"""Stores that cannot compare and delete in one step."""


def test_an_acknowledged_write_is_fully_readable(objects: ObjectStore) -> None:
    for size in (0, 1, 100_000):
        data = os.urandom(size)
        token = objects.put(f"a/{size}", data)
        assert objects.get(f"a/{size}") == (data, token)


def test_what_comes_in_pieces_is_there_whole_or_not_at_all(objects: ObjectStore) -> None:
    source = open_objects(parse_root("memory://pieces"))
    for size in (0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 3):
        data = os.urandom(size)
        source.put("a", data)
        objects.write_stream("b/c", source.read_stream("a"))
        assert b"".join(objects.read_stream("b/c")) == data

    def broken() -> Iterator[bytes]:
        yield bytes(PIECE_BYTES)
        yield bytes(PIECE_BYTES)
        raise RuntimeError("the source is gone")

    with pytest.raises(StorageError, match="the source is gone"):
        objects.write_stream("b/d", broken())
    with pytest.raises(ObjectNotFound):
        objects.write_stream("b/d", source.read_stream("nothing"))
    assert [entry.path for entry in objects.list("b")] == ["b/c"]


def test_put_replaces(objects: ObjectStore) -> None:
    objects.put("a", b"old")
    objects.put("a", b"new")
    assert objects.get("a")[0] == b"new"


def test_a_reader_sees_the_old_object_or_the_new_one_never_a_part(objects: ObjectStore) -> None:
    versions = [bytes([number]) * 50_000 for number in range(2)]
    objects.put("a", versions[0])
    done = threading.Event()
    torn: list[bytes] = []

    def read() -> None:
        while not done.is_set():
            data, _ = objects.get("a")
            if data not in versions:
                torn.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(40):
        objects.put("a", versions[turn % 2])
    done.set()
    reader.join()
    assert not torn


def test_put_if_absent_has_exactly_one_winner(objects: ObjectStore) -> None:
    start = threading.Barrier(8)

    def attempt(number: int) -> int | None:
        start.wait()
        try:
            objects.put_if_absent("race", str(number).encode())
        except ObjectExists:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(attempt, range(8)) if number is not None]
    assert len(winners) == 1
    assert objects.get("race")[0] == str(winners[0]).encode()


def test_delete_if_match_removes_what_was_read_and_leaves_nothing(objects: ObjectStore) -> None:
    objects.put("a/b", b"one")
    _, token = objects.get("a/b")
    objects.delete_if_match("a/b", token)
    with pytest.raises(ObjectNotFound):
        objects.get("a/b")
    assert objects.head("a/b") is None
    assert objects.list("") == []
    assert not objects.exists("a/b")
    assert not objects.exists("a")
    objects.delete("a/b")
    objects.put_if_absent("a/b", b"two")
    assert objects.get("a/b")[0] == b"two"
    assert [entry.path for entry in objects.list("a")] == ["a/b"]


def test_a_lost_delete_if_match_is_a_typed_error_and_the_object_stays(objects: ObjectStore) -> None:
    old = objects.put("a", b"one")
    objects.put("a", b"two")
    with pytest.raises(LostPrecondition):
        objects.delete_if_match("a", old)
    assert objects.get("a")[0] == b"two"
    with pytest.raises(LostPrecondition):
        objects.delete_if_match("never", old)
    _, token = objects.get("a")
    objects.delete_if_match("a", token)
    with pytest.raises(LostPrecondition):
        objects.delete_if_match("a", token)
    with pytest.raises(LostPrecondition):
        objects.put_if_match("a", b"three", token)


def test_after_delete_if_match_exactly_one_put_if_absent_wins(objects: ObjectStore) -> None:
    objects.delete_if_match("race", objects.put("race", b"old"))

    def attempt(number: int) -> bool:
        try:
            objects.put_if_absent("race", str(number).encode())
        except ObjectExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert won.count(True) == 1
    assert objects.get("race")[0] == str(won.index(True)).encode()


def test_only_old_tombstones_are_removed_and_never_an_object(objects: ObjectStore) -> None:
    look_alike = bytes(len(TOMBSTONE))
    objects.put("refs/live", look_alike)
    objects.delete_if_match("refs/gone", objects.put("refs/gone", b"one"))
    assert objects.remove_tombstones("refs", older_than=3600) == 0
    assert objects.remove_tombstones("elsewhere", older_than=-1) == 0
    left = 0 if objects.root.is_local else 1
    assert objects.remove_tombstones("refs", older_than=-1) == left
    assert objects.remove_tombstones("refs", older_than=-1) == 0
    assert objects.get("refs/live")[0] == look_alike
    objects.put_if_absent("refs/gone", b"two")
    assert [entry.path for entry in objects.list("refs")] == ["refs/gone", "refs/live"]


@pytest.mark.parametrize("objects", WITH_TOMBSTONES, indirect=True)
def test_a_name_taken_while_its_tombstone_is_removed_is_never_lost(objects: ObjectStore, tmp_path: Path) -> None:
    objects.delete_if_match("refs/gone", objects.put("refs/gone", b"one"))
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(2) as workers, active("objects.tombstone_leaving", f"pause:{gate}"):
        removal = workers.submit(objects.remove_tombstones, "refs", older_than=-1)
        wait_for(Path(f"{gate}.reached"))
        assert objects.list("refs") == []
        with pytest.raises(ObjectNotFound):
            objects.get("refs/gone")
        taking = workers.submit(objects.put_if_absent, "refs/gone", b"two")
        time.sleep(0.1)
        assert not taking.done(), "it waits until the tombstone is gone"
        gate.touch()
        assert removal.result() == 1
        taking.result()
    assert objects.get("refs/gone")[0] == b"two"


@pytest.mark.parametrize("objects", WITH_TOMBSTONES, indirect=True)
def test_the_tombstone_of_a_remover_that_died_holds_its_name_up_for_a_time_only(
    objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.delete_if_match("refs/gone", objects.put("refs/gone", b"one"))
    with active("objects.tombstone_leaving", "raise"), pytest.raises(StorageError):
        objects.remove_tombstones("refs", older_than=-1)
    monkeypatch.setattr("omnigraph.storage.objects.objects.LEAVING_SECONDS", -5.0)
    objects.put_if_absent("refs/gone", b"two")
    assert objects.get("refs/gone")[0] == b"two"


def test_a_tombstone_whose_place_was_taken_is_not_removed(objects: ObjectStore) -> None:
    objects.delete_if_match("refs/gone", objects.put("refs/gone", b"one"))
    objects.put_if_absent("refs/gone", b"two")
    assert objects.remove_tombstones("refs", older_than=-1) == 0
    assert objects.get("refs/gone")[0] == b"two"


def test_put_if_match_replaces_what_was_read(objects: ObjectStore) -> None:
    objects.put("a", b"one")
    _, token = objects.get("a")
    second = objects.put_if_match("a", b"two", token)
    third = objects.put_if_match("a", b"three", second)
    assert objects.get("a") == (b"three", third)


def test_a_lost_put_if_match_is_a_typed_error(objects: ObjectStore) -> None:
    token = objects.put("a", b"one")
    objects.put("a", b"other")
    with pytest.raises(LostPrecondition) as lost:
        objects.put_if_match("a", b"two", token)
    assert lost.value.storage_kind is StorageKind.PRECONDITION
    assert objects.get("a")[0] == b"other"


def test_put_if_match_of_a_deleted_object_is_lost(objects: ObjectStore) -> None:
    token = objects.put("a", b"one")
    objects.delete("a")
    with pytest.raises(LostPrecondition):
        objects.put_if_match("a", b"two", token)
    assert objects.head("a") is None


def test_put_if_match_is_a_compare_and_swap_between_threads(objects: ObjectStore) -> None:
    objects.put("counter", b"0")

    def add(_: int) -> None:
        while True:
            data, token = objects.get("counter")
            try:
                objects.put_if_match("counter", str(int(data) + 1).encode(), token)
            except LostPrecondition:
                continue
            return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(24)))
    assert objects.get("counter")[0] == b"24"


def test_put_if_match_is_a_compare_and_swap_between_processes_on_local_disk(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    objects.put("counter", b"0")
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=add_to_counter, args=(str(tmp_path), 40)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert objects.get("counter")[0] == b"120"


@pytest.mark.parametrize("call", ["put", "put_if_absent", "put_if_match", "delete"])
def test_every_change_on_local_disk_waits_for_a_swap_under_way(tmp_path: Path, call: str) -> None:
    """Were puts and deletes outside the lock, a swap could compare, let one pass, and undo it."""
    objects = open_objects(parse_root(tmp_path))
    token = objects.put("a", b"start")
    changes: dict[str, Callable[[], object]] = {
        "put": lambda: objects.put("a", b"x"),
        "put_if_absent": lambda: _apply(objects, "absent", "a", b"x"),
        "put_if_match": lambda: objects.put_if_match("a", b"x", token),
        "delete": lambda: objects.delete("a"),
    }
    with ThreadPoolExecutor(1) as pool:
        with exclusive(objects._lock_file("a")):
            change = pool.submit(changes[call])
            with pytest.raises(TimeoutError):
                change.result(timeout=0.1)
            assert objects.get("a")[0] == b"start"
        change.result(timeout=60)


def test_a_missing_object_and_an_io_error_are_told_apart(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    with pytest.raises(ObjectNotFound) as missing:
        objects.get("nothing/here")
    assert missing.value.storage_kind is StorageKind.NOT_FOUND
    os.symlink("loop", tmp_path / "loop")
    with pytest.raises(StorageError) as broken:
        objects.get("loop")
    assert not isinstance(broken.value, ObjectNotFound)


def test_a_missing_object_is_not_found(objects: ObjectStore) -> None:
    with pytest.raises(ObjectNotFound):
        objects.get("nothing/here")
    assert objects.head("nothing/here") is None
    objects.put("file", b"")
    with pytest.raises(ObjectNotFound):
        objects.get("file/below")
    with pytest.raises(ObjectNotFound):
        objects.get("nothing")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_a_permission_error_is_loud(tmp_path: Path) -> None:
    store = tmp_path / "closed"
    open_objects(parse_root(store)).put("a", b"secret")
    store.chmod(0o700)
    spawn = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = spawn.Queue()
    process = spawn.Process(target=try_without_permission, args=(str(store), results))
    process.start()
    found = [results.get(timeout=60) for _ in range(4)]
    process.join(60)
    assert all(text.startswith("configuration: ") and "not allowed" in text for text in found), found


def test_listing_a_prefix_does_not_catch_siblings(objects: ObjectStore) -> None:
    for path in ("a/b/1", "a/b/2", "a/bc/3", "a/b.json", "ab/4"):
        objects.put(path, b"x")
    assert [entry.path for entry in objects.list("a/b")] == ["a/b/1", "a/b/2"]
    assert [entry.path for entry in objects.list("a/b/")] == ["a/b/1", "a/b/2"]
    assert [entry.path for entry in objects.list("a")] == ["a/b.json", "a/b/1", "a/b/2", "a/bc/3"]
    assert len(objects.list()) == 5
    assert objects.list("nothing") == []
    assert [entry.size for entry in objects.list("ab")] == [1]


def test_listing_leaves_out_temporary_files_and_locks(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    objects.put("a/1", b"x")
    (tmp_path / "a" / "2#1").write_bytes(b"half")
    assert [entry.path for entry in objects.list()] == ["a/1"]


def test_files_of_a_writer_that_died_are_removed_when_old(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    objects.put("a/1", b"x")
    half = tmp_path / "a" / "2#1"
    half.write_bytes(b"half")
    assert objects.remove_temporaries(older_than=60) == 0
    os.utime(half, (0, 0))
    assert objects.remove_temporaries(older_than=60) == 1
    assert objects.get("a/1")[0] == b"x"


def test_a_temporary_file_that_is_renamed_while_temporaries_are_removed_is_left_alone(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    objects.put("a/1", b"x")
    # Listed, and not there when it is looked at.
    (tmp_path / "a" / "2#1").symlink_to(tmp_path / "a" / "gone")
    assert objects.remove_temporaries(older_than=-1) == 0


@pytest.mark.slow
@pytest.mark.s3
def test_a_store_that_does_not_answer_is_a_transient_error_within_bounds(
    s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    root = parse_root("s3://nobody/there")
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(lambda: open_objects(root).get("a")), pool.submit(lambda: TableStore(root).head("t"))]
    for call in calls:
        with pytest.raises(StorageError) as silent:
            call.result()
        assert silent.value.storage_kind is StorageKind.TRANSIENT
    assert time.monotonic() - started < 90


@pytest.mark.s3
def test_a_bucket_that_does_not_exist_is_no_missing_object(s3_server: str) -> None:
    objects = open_objects(parse_root("s3://no-such-bucket-here/x"))
    with pytest.raises(StorageError):
        objects.put("a", b"")


def test_delete_and_delete_prefix_are_idempotent(objects: ObjectStore) -> None:
    for path in ("a/1", "a/2", "ab/3"):
        objects.put(path, b"x")
    objects.delete("a/1")
    objects.delete("a/1")
    objects.delete("never/was")
    assert objects.delete_prefix("a") == 1
    assert objects.delete_prefix("a") == 0
    assert [entry.path for entry in objects.list()] == ["ab/3"]


def test_no_folder_is_left_of_a_prefix_that_is_deleted(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path / "graph"))
    for path in ("a/b/1", "a/b/c/2", "a/bc/3"):
        objects.put(path, b"x")
    assert objects.delete_prefix("a/b") == 2
    assert [entry.path for entry in objects.list()] == ["a/bc/3"]
    assert sorted(path.name for path in (tmp_path / "graph" / "a").iterdir()) == ["bc"]
    (tmp_path / "graph" / "a" / "d" / "e").mkdir(parents=True)
    objects.remove_empty_folders("a")
    assert sorted(path.name for path in (tmp_path / "graph" / "a").iterdir()) == ["bc"]
    objects.remove_empty_folders("nowhere")


def test_puts_and_removed_folders_do_not_meet(tmp_path: Path) -> None:
    """Whoever puts an object makes its folder again when somebody else removed it as an empty one."""
    objects = open_objects(parse_root(tmp_path / "graph"))
    over = threading.Event()

    def remove() -> None:
        while not over.is_set():
            objects.remove_empty_folders("a")

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for number in range(300):
            objects.put(f"a/b/{number}", b"x")
            assert objects.get(f"a/b/{number}")[0] == b"x"
            objects.delete(f"a/b/{number}")
    finally:
        over.set()
        remover.join()


def test_a_non_empty_prefix_exists(objects: ObjectStore) -> None:
    assert not objects.exists("")
    objects.put("a/b/c", b"x")
    assert objects.exists("")
    assert objects.exists("a")
    assert objects.exists("a/b")
    assert objects.exists("a/b/c")
    assert not objects.exists("a/b/cd")
    assert not objects.exists("a/bc")


def test_an_empty_directory_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    objects = open_objects(parse_root(tmp_path))
    assert not objects.exists("empty")
    assert not objects.exists("")


def test_looking_into_a_place_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path / "not yet"))
    assert objects.list() == []
    assert not objects.exists("a")
    objects.delete("a")
    with pytest.raises(ObjectNotFound):
        objects.get("a")
    assert not (tmp_path / "not yet").exists()


@pytest.mark.parametrize(
    "path", ["with space/and more", "plain", "dots.in.name", "per%20cent", "=2F", "ä/ö", "a/./b", "./c"]
)
def test_paths_come_back_as_they_went_in(objects: ObjectStore, path: str) -> None:
    objects.put(path, b"x")
    clean = "/".join(part for part in path.split("/") if part != ".")
    assert [entry.path for entry in objects.list()] == [clean]
    assert objects.get(path)[0] == b"x"
    assert objects.get(clean)[0] == b"x"


def test_a_path_may_not_leave_the_root(objects: ObjectStore) -> None:
    for path in ("../a", "a/../../b", "a\0b"):
        with pytest.raises(BadRequest):
            objects.put(path, b"")


def test_calls_can_be_counted(objects: ObjectStore) -> None:
    calls: Counter[str] = Counter()
    objects.on_call = lambda name: calls.update([name])
    token = objects.put("a", b"1")
    objects.put_if_match("a", b"2", token)
    objects.get("a")
    objects.list("")
    objects.delete("a")
    assert calls == {"put": 1, "put_if_match": 1, "get": 1, "list": 1, "delete": 1}


def test_lock_files_are_of_a_fixed_number(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    for number in range(300):
        objects.put(f"many/{number}", b"x")
        objects.delete(f"many/{number}")
    assert len(list((tmp_path / "__locks" / "os").iterdir())) <= 64


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "absent", "match", "delete"]), st.sampled_from("abc"), st.binary(max_size=4)),
        max_size=30,
    )
)
def test_local_disk_and_memory_agree(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, bytes]]
) -> None:
    """The local compare-and-swap is ours, that of memory is the library's: random histories give the same state."""
    directory = tmp_path_factory.mktemp("store")
    stores = [
        open_objects(parse_root(directory)),
        open_objects(parse_root(f"memory://{directory.name}{os.urandom(4).hex()}")),
    ]
    for call, path, data in steps:
        outcomes = [_apply(store, call, path, data) for store in stores]
        assert outcomes[0] == outcomes[1]
    contents = [{entry.path: store.get(entry.path)[0] for entry in store.list()} for store in stores]
    assert contents[0] == contents[1]


def _apply(store: ObjectStore, call: str, path: str, data: bytes) -> str:
    try:
        if call == "put":
            store.put(path, data)
        elif call == "absent":
            store.put_if_absent(path, data)
        elif call == "match":
            store.put_if_match(path, data, store.get(path)[1])
        else:
            store.delete(path)
    except StorageError as error:
        return type(error).__name__
    return "done"
