"""The newest version of a line is always the newest, and finding it does not list a long history again and again."""

import json
import os

import pyarrow as pa
import pytest

from omnigraph.storage.handles.newest import NewestVersions
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root


@pytest.fixture
def tables(tmp_path):
    return TableStore(parse_root(str(tmp_path)))


def add(tables, table, name):
    return tables.commit_staged(tables.stage_append(table, pa.table({"id": [name]})), "op")


def new_table(tables):
    return tables.create("t", pa.schema([pa.field("id", pa.string())]), rows=pa.table({"id": ["a"]}))


def test_guard_lance_names_a_manifest_by_its_version_counted_down(tables, tmp_path):
    table = new_table(tables)
    add(tables, table, "b")
    manifests = [name for name in os.listdir(tmp_path / "t/_versions") if name.endswith(".manifest")]
    assert sorted(manifests, reverse=True) == [f"{2**64 - 1 - version:020d}.manifest" for version in (1, 2)]


def test_guard_lance_leaves_a_hint_after_each_commit(tables, tmp_path):
    add(tables, new_table(tables), "b")
    hint = tmp_path / "t/_versions/latest_version_hint.json"
    assert json.loads(hint.read_text()) == {"version": 2}
    assert NewestVersions(tables.root).known(str(tmp_path / "t")) == 2


@pytest.mark.parametrize("damage", ["gone", "nonsense", "of another version", "old", "behind"])
def test_a_hint_that_is_no_help_is_passed_over(tables, tmp_path, damage):
    table = new_table(tables)
    for name in "bcd":
        table = add(tables, table, name)
    hint = tmp_path / "t/_versions/latest_version_hint.json"
    if damage == "gone":
        hint.unlink()
    elif damage == "old":
        hint.write_text('{"version": 2}')
        tables.remove_versions("t", None, [3])
        os.utime(hint, ns=(0, 0))
    else:
        texts = {"nonsense": "{", "of another version": '{"version": 99}', "behind": '{"version": 2}'}
        hint.write_text(texts[damage])
    assert TableStore(parse_root(str(tmp_path))).head("t") == table


def test_a_line_that_did_not_change_is_not_looked_up_again(tables):
    table = add(tables, new_table(tables), "b")
    calls = []
    tables.on_call = lambda name, location: calls.append(name)
    assert [tables.head("t") for _ in range(3)] == [table] * 3
    assert calls == []


def test_somebody_elses_versions_are_seen_at_once(tables, tmp_path):
    other = TableStore(parse_root(str(tmp_path)))
    table = new_table(tables)
    for number in range(20):
        table = add(other, other.head("t"), f"r{number}")
        assert tables.head("t") == table
        table = add(tables, table, f"s{number}")
        assert other.head("t") == table


def test_a_change_within_one_tick_of_the_clock_is_seen(tables, tmp_path):
    """The directory's time is put back to what it was, as if no tick had passed."""
    other = TableStore(parse_root(str(tmp_path)))
    table = new_table(tables)
    tables.head("t")
    directory = tmp_path / "t/_versions"
    before = os.stat(directory)
    newer = add(other, table, "b")
    os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert tables.head("t") == newer


def test_versions_that_came_and_went_do_not_hide_newer_ones(tables, tmp_path):
    other = TableStore(parse_root(str(tmp_path)))
    table = new_table(tables)
    tables.head("t")
    for name in "bcd":
        table = add(other, table, name)
    other.remove_versions("t", None, [2, 3])
    assert tables.head("t") == table


def test_only_local_lines_are_watched():
    watch = NewestVersions(parse_root("s3://bucket/graph"))
    watch.note("s3://bucket/graph/t", watch.changed("s3://bucket/graph/t"), 3)
    assert watch.known("s3://bucket/graph/t") is None


def test_a_look_beside_a_commit_starts_from_what_it_is_made_on(tables, tmp_path, monkeypatch):
    newest = NewestVersions(tables.root)
    line = str(tmp_path / "t")
    table = add(tables, new_table(tables), "b")
    (tmp_path / "t/_versions/latest_version_hint.json").unlink()
    assert newest.known(line) is None
    with newest.committing(line, 2):
        assert newest.known(line) == 2
        (tmp_path / "t/_versions/half written").touch()
        assert newest.known(line) == 2
        add(TableStore(tables.root), table, "c")
        (tmp_path / "t/_versions/latest_version_hint.json").unlink()
        assert newest.known(line) == 3, "it is there, whoever made it"
    (tmp_path / "t/_versions/half written").unlink()
    assert newest.known(line) is None, "no commit, no hint: Lance is asked"
    monkeypatch.setattr("omnigraph.storage.handles.newest._COMMIT_SECONDS", -1)
    with newest.committing(line, 3):
        assert newest.known(line) is None, "a commit that takes long says nothing"
    assert newest.known(line) is None


def test_a_commit_whose_base_is_gone_says_nothing(tables, tmp_path):
    newest = NewestVersions(tables.root)
    new_table(tables)
    (tmp_path / "t/_versions/latest_version_hint.json").unlink(missing_ok=True)
    with newest.committing(str(tmp_path / "t"), 7):
        assert newest.known(str(tmp_path / "t")) is None
