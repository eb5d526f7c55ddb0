"""Folders for what work puts aside: gone when it ends, and after a kill gone with the next work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import scratch
from omnigraph.scratch import OWNER, PREFIX, remove_abandoned, scratch_folder

WORKS_ON = """
import sys
from omnigraph.scratch import scratch_folder
with scratch_folder("test") as folder:
    (folder / "rows").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(scratch, "_swept", {})
    return folder


def working() -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder open."""
    child = subprocess.Popen(
        [sys.executable, "-c", WORKS_ON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def ended(child: subprocess.Popen[str], *, killed: bool) -> None:
    if killed:
        child.send_signal(signal.SIGKILL)
    child.communicate("")


def test_a_folder_goes_when_its_work_ends_or_fails(temporary: Path) -> None:
    def fails() -> None:
        with scratch_folder("test") as folder:
            (folder / "rows").write_bytes(b"x")
            assert folder.parent == temporary
            assert folder.name.startswith(f"{PREFIX}test-")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_uses_stays(temporary: Path) -> None:
    dead, left = working()
    alive, used = working()
    try:
        ended(dead, killed=True)
        assert (left / "rows").is_file()
        with scratch_folder("test") as mine:
            assert set(temporary.iterdir()) == {used, mine}
            assert (used / "rows").is_file()
            assert remove_abandoned(temporary) == []
    finally:
        ended(alive, killed=False)
    assert list(temporary.iterdir()) == []


def test_folders_of_others_are_not_touched(temporary: Path) -> None:
    (temporary / "omnigraph-else").mkdir()
    young = temporary / f"{PREFIX}test-young"  # made, and not yet locked
    young.mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / OWNER).touch()
    (temporary / f"{PREFIX}test-link").symlink_to(elsewhere)
    assert remove_abandoned(temporary) == []
    assert (elsewhere / OWNER).is_file()


def test_others_are_looked_for_now_and_then_only(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    monkeypatch.setattr(scratch, "remove_abandoned", looks.append)
    for _ in range(3):
        with scratch_folder("test"):
            pass
    assert looks == [temporary]


def test_a_load_clears_what_a_killed_one_left(temporary: Path, tmp_path: Path) -> None:
    dead, left = working()
    ended(dead, killed=True)
    assert left.is_dir()
    graph = og.init(str(tmp_path / "graph.omni"), schema="node Person { name: String @key }")
    graph.load([{"type": "Person", "data": {"name": "a"}}], mode="merge")
    assert list(temporary.iterdir()) == []
    assert graph.verify().ok
