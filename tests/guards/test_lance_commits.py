"""What Lance does with transactions that were prepared on an older version."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from lance import Transaction
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import RowIdSequence, write_fragments

from tests.guards.conftest import NewTable, append_of, commit, guarded_append_of, ids, rows, upsert_of


def test_stale_appends_are_rebased_even_without_retries(new_table: NewTable) -> None:
    base = new_table("a")
    first, second = append_of(base, "b"), append_of(base, "c")
    commit(base, first)
    assert commit(base, second).version == 3
    assert ids(base) == ["a", "b", "c"]


def test_two_upserts_of_the_same_new_id_both_succeed(new_table: NewTable) -> None:
    base = new_table("a")
    first, second = upsert_of(base, "new"), upsert_of(base, "new")
    commit(base, first)
    commit(base, second)
    assert ids(base) == ["a", "new", "new"]


def test_two_updates_of_the_same_row_conflict(new_table: NewTable) -> None:
    base = new_table("a")
    first, second = upsert_of(base, "a"), upsert_of(base, "a", value=2)
    commit(base, first)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(base, second)


def test_a_touched_first_fragment_makes_lance_refuse_a_stale_commit(new_table: NewTable) -> None:
    base = new_table("a")
    first, second = guarded_append_of(base, "b"), guarded_append_of(base, "c")
    commit(base, first)
    with pytest.raises(CommitConflictError):
        commit(base, second)
    assert ids(base) == ["a", "b"]


def test_the_guard_keeps_lineage_and_index_coverage(new_table: NewTable) -> None:
    base = new_table("a")
    base.create_scalar_index("id", "BTREE")
    base = lance.dataset(base.uri)
    landed = commit(base, guarded_append_of(base, "b"))
    (index,) = landed.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[0]]
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = [tuple(row.values()) for row in landed.scanner(columns=columns).to_table().to_pylist()]
    assert found == [("a", 0, 1, 1), ("b", 1, 3, 3)]


def test_the_guard_does_not_hold_against_an_index_a_configuration_or_an_unguarded_append(new_table: NewTable) -> None:
    """Hence the version that comes back is compared as well."""
    for other in ("index", "configuration", "append"):
        base = new_table("a")
        stale = guarded_append_of(base, "b")
        if other == "index":
            lance.dataset(base.uri).create_scalar_index("id", "BTREE")
        elif other == "configuration":
            lance.dataset(base.uri).update_config({"x": "y"})
        else:
            commit(base, append_of(base, "c"))
        assert commit(base, stale).version == 3


def test_a_stale_overwrite_wins_silently_with_retries_and_is_refused_without(new_table: NewTable) -> None:
    for retries in (20, 0):
        base = new_table("a")
        stale = Transaction(base.version, LanceOperation.Overwrite(base.lance_schema, write_fragments(rows("x"), base)))
        commit(base, append_of(base, "b"))
        if retries:
            LanceDataset.commit(base, stale, max_retries=retries)
            assert ids(base) == ["x"]
        else:
            with pytest.raises(CommitConflictError):
                commit(base, stale)
            assert ids(base) == ["a", "b"]


def test_an_overwrite_with_the_own_schema_appends_to_a_table_without_fragments(new_table: NewTable) -> None:
    base = new_table("a")
    emptied = commit(base, Transaction(1, LanceOperation.Overwrite(base.lance_schema, [])))
    assert (emptied.count_rows(), emptied.get_fragments()) == (0, [])
    landed = commit(
        emptied, Transaction(2, LanceOperation.Overwrite(base.lance_schema, write_fragments(rows("b"), emptied)))
    )
    assert landed.scanner(columns=["id", "_rowid"]).to_table().to_pylist() == [{"id": "b", "_rowid": 1}]
    assert str(landed.lance_schema) == str(base.lance_schema)


def test_a_first_version_is_made_by_one_only(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    staged = [write_fragments(rows(name), uri, mode="create", return_transaction=True) for name in "ab"]
    assert LanceDataset.commit(uri, staged[0], max_retries=0, enable_stable_row_ids=True).version == 1
    with pytest.raises(OSError, match="not found"):
        LanceDataset.commit(uri, staged[1], max_retries=0, enable_stable_row_ids=True)
    made = lance.dataset(uri)
    assert (made.version, made.has_stable_row_ids, made.data_storage_version) == (1, True, "2.2")


def test_properties_come_back_for_the_kinds_of_commit_that_are_tagged(new_table: NewTable) -> None:
    base = new_table("a", "b")
    index = base.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[0])
    operations = [
        lambda at: append_of(at, "c").operation,
        lambda at: guarded_append_of(at, "d").operation,
        lambda at: upsert_of(at, "a").operation,
        lambda at: LanceOperation.CreateIndex([index], []),
        lambda at: LanceOperation.Project(at.lance_schema),
        lambda at: LanceOperation.Merge([f.metadata for f in at.get_fragments()], at.lance_schema),
        lambda at: LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap({"x": "y"})),
        lambda at: LanceOperation.Restore(1),
        lambda at: LanceOperation.Overwrite(at.lance_schema, []),
    ]
    for number, operation in enumerate(operations):
        staged = Transaction(base.version, operation(base), transaction_properties={"tag": str(number)})
        base = commit(base, staged)
        found = base.read_transaction(base.version)
        assert found is not None
        assert (found.transaction_properties, found.uuid) == ({"tag": str(number)}, staged.uuid)


def test_a_restore_is_accepted_over_a_commit_in_flight_and_drops_it(new_table: NewTable) -> None:
    base = new_table("a")
    second = commit(base, append_of(base, "b"))
    commit(second, append_of(second, "c"))
    restored = commit(second, Transaction(second.version, LanceOperation.Restore(1)))
    assert restored.version == 4
    assert ids(base) == ["a"]


def test_a_hand_built_update_keeps_row_ids_and_creation(new_table: NewTable) -> None:
    base = new_table(*"abc")
    hit = base.scanner(filter="id = 'b'", with_row_id=True, with_row_address=True).to_table().to_pydict()
    fragment, offset = divmod(hit["_rowaddr"][0], 1 << 32)
    left = base.get_fragment(fragment).delete_rows([offset])
    written = write_fragments(rows("b", "new", value=7), base)
    written[0].row_id_meta = RowIdSequence(hit["_rowid"]).to_inline_metadata()
    operation = LanceOperation.Update(updated_fragments=[left], new_fragments=written, update_mode="rewrite_rows")
    landed = commit(base, Transaction(base.version, operation))
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = {row["id"]: tuple(row.values())[1:] for row in landed.scanner(columns=columns).to_table().to_pylist()}
    assert found == {"a": (0, 1, 1), "c": (2, 1, 1), "b": (1, 1, 2), "new": (3, 2, 2)}
    assert lance.dataset(base.uri, version=1).count_rows() == 3


def test_deleting_all_rows_of_a_fragment_gives_none(new_table: NewTable) -> None:
    assert new_table("a").get_fragments()[0].delete_rows([0]) is None


def test_a_panic_in_native_code_is_no_exception(new_table: NewTable) -> None:
    """Hence `lance_errors` looks for it by name. The text segments here were built with different settings."""
    base = new_table("a", "b", rows_per_file=1)
    one = base.merge_existing_index_segments(
        [base.create_index_uncommitted("id", "INVERTED", name="i", fragment_ids=[0])]
    )
    base = commit(base, Transaction(base.version, LanceOperation.CreateIndex([one], [])))
    other = base.merge_existing_index_segments(
        [
            base.create_index_uncommitted(
                "id", "INVERTED", name="i", fragment_ids=[0, 1], with_position=True, replace=True
            )
        ]
    )
    with pytest.raises(BaseException, match="not implemented") as panic:
        commit(base, Transaction(base.version, LanceOperation.CreateIndex([other], [])))
    assert panic.type.__name__ == "PanicException"
    assert not issubclass(panic.type, Exception)


def test_the_number_of_a_fragment_is_not_used_again(new_table: NewTable) -> None:
    """The manifest is read as a difference: what is in a fragment of a known number is known."""
    table = new_table("a")
    seen = {fragment.fragment_id for fragment in table.get_fragments()}
    for value in range(3):
        # Each update moves the row and leaves its fragment, the last one, empty: Lance drops it.
        table = commit(table, upsert_of(table, "a", value=value))
        numbers = {fragment.fragment_id for fragment in table.get_fragments()}
        assert len(numbers) == 1
        assert not numbers & seen
        seen |= numbers
    table = commit(table, append_of(table, "b"))
    assert len({fragment.fragment_id for fragment in table.get_fragments()} - seen) == 1


def test_a_data_file_makes_a_class_each_time_its_path_is_asked_for(new_table: NewTable) -> None:
    """What `plain_paths` is there for; once Lance has stopped it, that can go."""
    (fragment,) = new_table("a").get_fragments()
    (file,) = fragment.metadata.files
    assert type(file.path) is not type(file.path)
    assert str(file.path) == file._path
