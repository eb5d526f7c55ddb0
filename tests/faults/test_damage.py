"""Damage of single files: each kind of file of a graph cut off, emptied, flipped or removed.

Whatever is damaged, `verify` ends with a report and every read ends with its rows or with an error of ours: nothing
else is raised, and the process lives. With checksums, every flip of a byte in a published file is found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import Snapshot, WriterKind
from omnigraph.maintain import verify as verify_module
from omnigraph.maintain.checksums import check_files
from omnigraph.maintain.tags import Tags
from omnigraph.maintain.verify import Rule, verify
from omnigraph.storage.lance_errors import FileDamaged
from tests.faults.harness import answers_of
from tests.faults.writers import PERSON, new_graph, put_friends, put_people

SEED = 7


def delete_person(store: GraphStore, name: str) -> None:
    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        pin = base.pin(PERSON)
        staged = store.tables.stage_delete(session.line(pin), [name])
        return session.intent(WriterKind.MUTATION, base, [session.table_write(pin, staged)])

    run_write(store, "main", prepare)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with every kind of file: data, deletion vectors, forks, tags, and a copy of it beside it."""
    path = tmp_path_factory.mktemp("damage") / "graph"
    with new_graph(str(path)) as store:
        put_people(store, {f"p{number}": number for number in range(40)})
        delete_person(store, "p3")
        create_branch(store, "review")
        put_friends(store, {"bob": 1}, [("ada", "bob")], "review")
        Tags(store, "main", None).create("kept", "main")
    shutil.copytree(path, path.with_name("copy"))
    return path


def flipped(data: bytes, random_: random.Random) -> bytes:
    place = random_.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random_.randrange(8))]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "flipped": flipped,
    "cut off": lambda data, random_: data[: len(data) // 2],
    "emptied": lambda data, random_: b"",
    "removed": lambda data, random_: None,
}


def files_of(model: Path) -> list[str]:
    files = [path.relative_to(model) for path in sorted(model.rglob("*")) if path.is_file()]
    return [str(file) for file in files if not str(file).startswith("__locks")]


def look_at_everything(place: str) -> dict[str, object]:
    """Verify and read every branch; what was said. Runs in a child: damage must not end the process."""
    said: dict[str, object] = {}
    try:
        with open_store(place, read_only=True) as store:
            report = verify(store)
            said["ok"] = report.ok
            for name in store.refs.names():
                for pin in store.snapshot(branch=name).tables.values():
                    said[f"{name} {pin.table_key}"] = store.tables.scan_table(table_of(pin)).num_rows
    except OmniGraphError as error:
        said["error"] = error.message
    return said


def damage_one_after_the_other(model: str, cases: list[tuple[str, str]], notes: str) -> str:
    """Each case: damage a file, look, put it back. The notes tell how far it came if the process dies."""
    # Nobody else is at work, so there is no need to look again later.
    verify_module.LOOK_SECONDS = 0.0
    for file, kind in cases:
        Path(notes).write_text(f"{file} {kind}")
        path = Path(model, file)
        data = path.read_bytes()
        changed = DAMAGES[kind](data, random.Random(f"{SEED}{Path(file).parent}{kind}"))
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
        try:
            look_at_everything(model)
        finally:
            path.write_bytes(data)
    return json.dumps("done")


def test_no_damage_ends_the_process_or_raises_what_is_not_ours(model: Path, tmp_path: Path) -> None:
    cases = [(file, kind) for file in files_of(model) for kind in DAMAGES]
    # Some files with each kind of damage; all of them when there is time.
    every = bool(os.environ.get("OMNIGRAPH_TEST_EVERY_OPERATION"))
    chosen = cases if every else [case for number, case in enumerate(cases) if number % 9 == 0]
    notes = tmp_path / "notes"
    try:
        assert answers_of(damage_one_after_the_other, [(str(model), chosen, str(notes))]) == ['"done"']
    except AssertionError as failure:
        raise AssertionError(f"at {notes.read_text()}") from failure


def test_every_flip_in_a_published_file_is_found_by_its_checksum(model: Path) -> None:
    published = [f for f in files_of(model) if any(f"/{part}/" in f for part in ("data", "_deletions", "_versions"))]
    published = [f for f in published if not f.startswith("_graph_commit") and f.endswith((".lance", ".arrow", "fest"))]
    random_ = random.Random(SEED)
    with open_store(model, read_only=True) as store:
        recorded = store.commits.files()
        # Made by `init` and by forks, before the first commit: nothing of anybody's in them.
        known = [file for file in published if file in recorded]
        assert len(known) > 10
        assert any("/_deletions/" in file for file in known)
        assert any(file.startswith("__manifest/") for file in known)
        for file in random_.sample(known, 8):
            path = Path(model, file)
            data = path.read_bytes()
            path.write_bytes(flipped(data, random_))
            try:
                found = check_files(store, [(store.branch("main"), store.snapshot())])
                assert [one.path for one in found.damaged] == [file]
            finally:
                path.write_bytes(data)


def test_verify_deep_goes_on_after_each_finding_and_names_every_file(model: Path) -> None:
    with open_store(model, read_only=True) as store:
        person = store.snapshot().pin(PERSON)
        data = sorted(f for f in store.commits.files() if f.startswith(f"{person.location}/data/"))[:2]
    kept = {file: Path(model, file).read_bytes() for file in data}
    try:
        for file, content in kept.items():
            Path(model, file).write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with open_store(model, read_only=True) as store:
            report = verify(store, deep=True)
        found = [f for f in report.findings if f.rule is Rule.CHECKSUMS]
        assert sorted(f.message.split()[2] for f in found) == data
        assert report.files is not None
        assert report.files.checked > 10
    finally:
        for file, content in kept.items():
            Path(model, file).write_bytes(content)
    with open_store(model, read_only=True) as store:
        assert verify(store, deep=True).ok


def test_on_request_a_read_refuses_a_file_that_is_not_what_was_published(model: Path) -> None:
    with open_store(model, read_only=True) as store:
        pin = store.snapshot().pin(PERSON)
        file = next(f for f in sorted(store.commits.files()) if f.startswith(f"{pin.location}/data/"))
    path = Path(model, file)
    data = path.read_bytes()
    # In the middle of the values: Lance reads another value and says nothing.
    path.write_bytes(data[:70] + bytes([data[70] ^ 1]) + data[71:])
    try:
        with override(check_files="all"), open_store(model, read_only=True) as store:
            with pytest.raises(StorageError, match="published with") as caught:
                store.tables.scan_table(table_of(store.snapshot().pin(PERSON)))
            assert caught.value.details["path"] == file
    finally:
        path.write_bytes(data)


def test_a_damaged_reference_of_a_fork_is_named(model: Path) -> None:
    file = next(Path(model, "__manifest/_refs/branches").glob("*.json"))
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    try:
        with open_store(model, read_only=True) as store:
            assert store.snapshot(branch="review").tables
            (finding,) = verify(store).findings
            assert str(file.relative_to(model)) in finding.message
        file.unlink()
        with open_store(model) as store, pytest.raises(FileDamaged) as caught:
            create_branch(store, "child", "review")
        assert caught.value.details["path"] == str(file.relative_to(model))
    finally:
        file.write_bytes(data)
