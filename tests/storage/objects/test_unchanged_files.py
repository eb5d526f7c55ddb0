"""Files that are read again: kept while they are the same, and never believed when they might not be."""

import os
import threading
from pathlib import Path

import pytest

from omnigraph.storage.objects import unchanged_files
from omnigraph.storage.objects.local_files import write_file
from omnigraph.storage.objects.unchanged_files import MOST_BYTES, MOST_FILES, UnchangedFiles

SETTLED = unchanged_files.SETTLED_NANOSECONDS


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were really read."""
    found: list[str] = []
    read_file = unchanged_files.read_file

    def counted(path: str) -> bytes:
        found.append(path)
        return read_file(path)

    monkeypatch.setattr(unchanged_files, "read_file", counted)
    return found


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once, since no test can change the time at which the disk says it was changed."""
    monkeypatch.setattr(unchanged_files, "SETTLED_NANOSECONDS", -1_000_000_000)


def put(path: Path, data: bytes) -> str:
    write_file(str(path), data, replace=True)
    return str(path)


def test_a_file_that_stays_the_same_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"one")
    assert [files.read(path) for _ in range(3)] == [b"one"] * 3
    assert reads == [path]


def test_a_file_in_its_place_is_read(tmp_path: Path) -> None:
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"one")
    for number in range(200):
        # Of one length, and as quick as can be: only the file itself can tell.
        content = f"{number:03}".encode()
        assert files.read(put(Path(path), content)) == content


def test_a_file_with_an_older_time_in_its_place_is_read(tmp_path: Path) -> None:
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"one")
    found = os.stat(path)
    assert files.read(path) == b"one"
    put(Path(path), b"two")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert files.read(path) == b"two"


def test_a_file_that_went_is_missed(tmp_path: Path) -> None:
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"one")
    assert files.read(path) == b"one"
    os.unlink(path)
    with pytest.raises(FileNotFoundError):
        files.read(path)


def test_what_was_only_just_written_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged_files, "SETTLED_NANOSECONDS", SETTLED)
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"one")
    assert files.read(path) == b"one"
    assert not files._kept, "a clock that ticks slowly gives the next one the same time"


def test_only_small_files_are_kept_and_not_too_many(tmp_path: Path) -> None:
    files = UnchangedFiles()
    files.read(put(tmp_path / "large", b"x" * (MOST_BYTES + 1)))
    assert not files._kept
    for number in range(MOST_FILES + 5):
        files.read(put(tmp_path / f"ref-{number}", b"one"))
    assert len(files._kept) == MOST_FILES


def test_who_reads_beside_a_writer_gets_every_content_in_order(tmp_path: Path) -> None:
    files, path = UnchangedFiles(), put(tmp_path / "ref", b"0")
    over = threading.Event()

    def write() -> None:
        for number in range(1, 500):
            put(Path(path), str(number).encode())
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = [0]
    while not over.is_set():
        seen.append(int(files.read(path)))
    writer.join()
    assert seen == sorted(seen), "none is older than one that was read before"
    assert files.read(path) == b"499"
