"""What a process keeps in memory of versions is bounded, however many of them it makes."""

import ctypes
import gc
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.ledger.manifest import manifest
from omnigraph.storage import published_files
from omnigraph.storage.handles import sessions

COMMITS = 60
LIMIT = 400_000
SCHEMA = "node Person { slug: String @key }"


def write(graph: og.Graph, first: int, last: int) -> None:
    """Commits of one row each, with a read after each of them."""
    for number in range(first, last):
        graph.mutate("query q($s: String) { insert Person { slug: $s } }", s=str(number))
        found = graph.query("query q($s: String) { match { $p: Person { slug: $s } } return { $p.slug } }", s="0")
        assert found.rows() == [{"p.slug": "0"}]


def kept(place: Path, limit: int) -> int:
    """Bytes that Lance keeps after many small commits of one table."""
    with override(metadata_cache=limit), og.init(place, schema=SCHEMA) as graph:
        write(graph, 0, COMMITS)
        return graph._store.tables.handles.sessions.size()


def test_versions_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LEDGER_METADATA_CACHE", LIMIT // 4)
    assert kept(tmp_path / "much", 64 << 20) > 2 * LIMIT, "the commits of this test leave enough to tell"
    assert kept(tmp_path / "little", LIMIT // 4) <= LIMIT, "indexes have a cache of their own"


def test_a_session_that_has_met_many_versions_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "VERSIONS_OF_A_SESSION", 10)
    monkeypatch.setattr(sessions, "LARGE_SESSION", 100_000)
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        handles = graph._store.tables.handles
        write(graph, 0, 1)
        first = handles.sessions.of("nodes/x")
        most = 0
        for number in range(1, COMMITS):
            write(graph, number, number + 1)
            most = max(most, handles.sessions.of("nodes/x").size_bytes())
        assert not first.is_same_as(handles.sessions.of("nodes/x"))
        assert most < LIMIT, "what one session has met is little"
        of_rows = [one for one in handles._cached if not one.location.startswith("_")]
        assert of_rows, "handles are kept again after it"
        assert all(handles.sessions.has(one.location, handles._cached[one]) for one in of_rows), "none holds an old one"
        assert len(graph.query("query q { match { $p: Person } return { $p.slug } }")) == COMMITS


def test_a_small_session_is_kept_whatever_it_has_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "VERSIONS_OF_A_SESSION", 5)
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        write(graph, 0, 1)
        first = graph._store.tables.handles.sessions.of("nodes/x")
        write(graph, 1, 20)
        assert first.is_same_as(graph._store.tables.handles.sessions.of("nodes/x"))


def test_a_commit_leaves_few_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once caches are at their bounds, here small ones, a commit leaves its place in the history and little else."""
    monkeypatch.setattr(manifest, "_OLDER_ROWS", 16)
    monkeypatch.setattr(published_files, "_VERSIONS", 16)
    monkeypatch.setattr(published_files, "_STEPS", 16)
    with override(manifest_cache=4), og.init(tmp_path / "g", schema=SCHEMA) as graph:
        monkeypatch.setattr(graph._store.tables.handles, "_cache_size", 16)
        write(graph, 0, 70)
        before = blocks()
        write(graph, 70, 70 + 64)
        left = (blocks() - before) / 64
    assert left < 80, f"{left:.1f} blocks of memory for each commit"


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux says what is in use")
def test_a_commit_leaves_little_outside_of_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Lance and Arrow have taken and not given back, once sessions, here small ones, are at their bounds."""
    monkeypatch.setattr(sessions, "LEDGER_METADATA_CACHE", LIMIT // 4)
    monkeypatch.setattr(sessions, "LEDGER_INDEX_CACHE", LIMIT // 4)
    with override(metadata_cache=LIMIT // 4, index_cache=LIMIT // 4), og.init(tmp_path / "g", schema=SCHEMA) as graph:
        monkeypatch.setattr(graph._store.tables.handles, "_cache_size", 16)
        write(graph, 0, 120)
        left = [taken_by(graph, first, 160) for first in (120, 280, 440)]
    # What else the process does takes memory now and then; what commits leave is there in each stretch of them.
    assert sorted(left)[1] < 6_000, f"{[round(each) for each in left]} bytes for each commit"


def taken_by(graph: og.Graph, first: int, commits: int) -> float:
    """Bytes for each of some commits."""
    before = in_use()
    write(graph, first, first + commits)
    return (in_use() - before) / commits


class Mallinfo(ctypes.Structure):
    """What `mallinfo2` of the C library tells."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def in_use() -> int:
    """Bytes that the C library has given out."""
    gc.collect()
    tell = ctypes.CDLL(None).mallinfo2
    tell.restype = Mallinfo
    told = tell()
    return int(told.uordblks + told.hblkhd)


def blocks() -> int:
    """Blocks of memory that the interpreter has given out."""
    gc.collect()
    return sys.getallocatedblocks()
