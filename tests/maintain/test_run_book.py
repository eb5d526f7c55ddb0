"""Bad days of the run-book, row by row: make the state, see what the page says, do what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import OmniGraphError, RecoveryRequired, StorageError
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.maintain.optimize.optimize import ensure_indices
from omnigraph.maintain.repair import repair
from omnigraph.maintain.salvage import salvage
from omnigraph.maintain.verify import Rule, verify
from tests.faults.failing_files import full_from, plugged
from tests.maintain.graphs import PERSON, SCHEMA, people, put
from tests.maintain.test_repair import torn

PAGE = Path(__file__).resolve().parents[2] / "docs/operations.md"


def refused(work: Callable[[], object], text: str) -> None:
    with pytest.raises(OmniGraphError, match=text):
        work()


def sound(uri: str) -> None:
    with open_store(uri) as store:
        put(store, last=1)
        assert people(store)["last"] == 1
        assert verify(store, deep=True).ok, verify(store).findings


def full_disk(store: GraphStore, place: Path) -> None:
    with plugged(full_from(1, "ENOSPC")):
        refused(lambda: put(store, eve=5), "free some space and try again")
    put(store, eve=5)


def no_descriptors(store: GraphStore, place: Path) -> None:
    with plugged(full_from(1, "EMFILE")):
        refused(lambda: put(store, eve=5), "ulimit -n")
    put(store, eve=5)


def damaged_sidecar(store: GraphStore, place: Path) -> None:
    torn(store)
    with open_store(store.uri) as opened:
        refused(lambda: put(opened, eve=5), "cannot be read: it is damaged")
        assert repair(opened, confirm=True, force=True, restore=True).exit_code == 0


def damaged_log(store: GraphStore, place: Path) -> None:
    store.objects.delete_prefix("_graph_commits.lance/data")
    with open_store(store.uri, read_only=True) as reader:
        refused(reader.commits.graph, "is damaged or gone")
        assert people(reader)


def lost_manifest(store: GraphStore, place: Path) -> None:
    before = people(store)
    min(Path(store.uri, "__manifest/_versions").glob("*.manifest")).unlink()
    with open_store(store.uri) as opened:
        with pytest.raises(RecoveryRequired, match="was acknowledged after it"):
            put(opened, eve=5)
        assert repair(opened, confirm=True, force=True).exit_code == 0
        assert people(opened) == before


def flipped(store: GraphStore, place: Path) -> None:
    file = Path(store.uri, max(f for f in store.commits.files() if "/data/" in f and f.startswith("nodes/")))
    data = file.read_bytes()
    file.write_bytes(data[:64] + bytes([data[64] ^ 1]) + data[65:])
    with open_store(store.uri, read_only=True) as reader:
        assert Rule.CHECKSUMS in {finding.rule for finding in verify(reader, deep=True).findings}
        with override(check_files="all"), pytest.raises(StorageError, match="is damaged"):
            people(reader)
    file.write_bytes(data)


def missing(store: GraphStore, place: Path) -> None:
    pin = store.snapshot().pin(PERSON)
    file = next(Path(store.uri, pin.location, "data").glob("*.lance"))
    data = file.read_bytes()
    file.unlink()
    with open_store(store.uri, read_only=True) as reader:
        refused(lambda: reader.tables.scan_table(table_of(pin)), "is missing")
    assert not salvage(store.uri, place / "out").whole
    file.write_bytes(data)


def damaged_schema(store: GraphStore, place: Path) -> None:
    (file,) = Path(store.uri, "_schemas").glob("*.json")
    data = file.read_bytes()
    file.write_bytes(data[:-20])
    with open_store(store.uri, read_only=True) as reader:
        refused(lambda: reader.catalog(reader.snapshot().schema_digest), "is damaged")
    assert salvage(store.uri, place / "out").rows == len(people(store))
    file.write_bytes(data)


def damaged_index(store: GraphStore, place: Path) -> None:
    ensure_indices(store)
    for file in Path(store.uri).glob("nodes/*/_indices/*/page_data.lance"):
        file.write_bytes(b"")
    with open_store(store.uri) as opened:
        assert {finding.rule for finding in verify(opened).findings} == {Rule.INDEXES}
        put(opened, ada=7)
        assert people(opened)["ada"] == 7
        ensure_indices(opened)


ROWS: dict[str, Callable[[GraphStore, Path], None]] = {
    '"free some space and try again"': full_disk,
    '"`ulimit -n`"': no_descriptors,
    '"the sidecar … cannot be read: it is damaged"': damaged_sidecar,
    '"the commit log … is damaged or gone"': damaged_log,
    '"was acknowledged after it: the newest version of its manifest is lost"': lost_manifest,
    'verify: "every file is as it was published"': flipped,
    'verify: "every index can be read", or "an index … is damaged and is not used"': damaged_index,
    '"the file … is missing"': missing,
    '"the schema object … is damaged"': damaged_schema,
}
PAUSED, SCRATCH = "tests/faults/test_paused_writers.py", "tests/test_scratch.py"
ELSEWHERE = {
    '"was paused past its lease and was undone" (`conflict`)': (PAUSED, "test_undone_by_somebody_else_says_so"),
    '`in_doubt`, "Do not write again before you have looked"': (PAUSED, "test_a_real_doubt_names_the_operation"),
    "`omnigraph-scratch-…` in the temporary directory": (SCRATCH, "test_a_load_clears_what_a_killed_one_left"),
}
"""Rows that need an object store and a stopped process, or one that is killed: the test that plays each."""


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_run_book(row: str, tmp_path: Path) -> None:
    with create_store(tmp_path / "graph", SCHEMA) as store:
        put(store, ada=1, bob=2)
        put(store, cid=3)
        ROWS[row](store, tmp_path)
    sound(str(tmp_path / "graph"))


def rows_of(section: str) -> set[str]:
    """What one sees, of each row of the tables of a section."""
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| what you see")]
    return {line.removeprefix("| ").split(" | ")[0] for line in lines}


def test_every_row_is_played() -> None:
    page = PAGE.read_text()
    assert rows_of(page[page.index("### Bad days") : page.index("**Checksums.**")]) == {*ROWS, *ELSEWHERE}
    for file, name in ELSEWHERE.values():
        assert f"def {name}" in (PAGE.parents[1] / file).read_text()
