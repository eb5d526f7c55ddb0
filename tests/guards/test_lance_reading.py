"""What Lance's scans, look-ups, indexes and schemas do."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import Transaction
from lance.blob import blob_array, blob_field
from lance.dataset import ColumnOrdering, LanceOperation
from lance.fragment import write_fragments
from lance.query import MatchQuery
from lance.schema import LanceSchema

from tests.guards.conftest import NewTable, append_of, commit, upsert_of


def test_a_take_by_row_id_leaves_missing_rows_out_silently(new_table: NewTable) -> None:
    table = new_table("a", "b")
    found = table._take_rows([1, 77, 0], ["id", "_rowid"])
    assert found.to_pydict() == {"id": ["b", "a"], "_rowid": [1, 0]}


def test_ordering_by_a_column_that_is_not_read_fails(new_table: NewTable) -> None:
    """`reading.scan` reads the column and drops it again; if this fails, it need not any more."""
    with pytest.raises(ValueError, match="TakeExec"):
        new_table("a", "b").scanner(columns=["id"], order_by=[ColumnOrdering("v")]).to_table()


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("id") == "a",
        pc.field("v") < 1,
        pc.field("id").isin(["a"]),
        pc.field("v").is_null() | ~(pc.field("id") == "b"),
        pc.starts_with(pc.field("id"), "a"),
        pc.match_substring(pc.field("id"), "a"),
        (pc.field("v") + 1) == 1,
    ],
)
def test_expressions_that_lance_takes_over_substrait(new_table: NewTable, expression: pc.Expression) -> None:
    assert "a" in new_table("a", "b").to_table(filter=expression)["id"].to_pylist()


@pytest.mark.parametrize(
    "expression",
    [
        pc.match_like(pc.field("id"), "a%"),
        pc.utf8_lower(pc.field("id")) == "a",
        pc.field("u") == pa.scalar(1, pa.uint64()),
        pc.list_value_length(pc.field("l")) == 1,
    ],
)
def test_expressions_that_it_does_not_take(tmp_path: Path, expression: pc.Expression) -> None:
    table = pa.table({"id": ["a"], "u": pa.array([1], pa.uint64()), "l": [[1]]})
    with pytest.raises((pa.ArrowException, ValueError)):
        lance.write_dataset(table, str(tmp_path / "t")).to_table(filter=expression)


def test_a_backslash_is_an_ordinary_letter_in_filter_text(new_table: NewTable) -> None:
    table = new_table("\\", "'", "\\'")
    assert [table.count_rows(filter=text) for text in ("id = '\\'", "id = ''''", "id = '\\'''")] == [1, 1, 1]


def test_updates_leave_an_index_right(new_table: NewTable) -> None:
    base = new_table("a", "b")
    base.create_scalar_index("v", "BTREE")
    base = lance.dataset(base.uri)
    after = commit(base, upsert_of(base, "a", value=7))
    assert after.to_table(filter="v = 7")["id"].to_pylist() == ["a"]
    assert after.to_table(filter="v = 0")["id"].to_pylist() == ["b"]


def test_index_segments_need_their_fragments_named_and_leave_to_replace(new_table: NewTable) -> None:
    base = new_table("a", "b", rows_per_file=1)
    with pytest.raises(ValueError, match="fragment_ids"):
        base.create_index_uncommitted("id", "BTREE", name="i")
    one = base.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[0])
    base = commit(base, Transaction(base.version, LanceOperation.CreateIndex([one], [])))
    with pytest.raises(Exception, match=r"(?i)already exists|replace"):
        base.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[1])
    two = base.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[1], replace=True)
    base = commit(base, Transaction(base.version, LanceOperation.CreateIndex([two], [])))
    assert [base.count_rows(filter=f"id = '{name}'") for name in "ab"] == [1, 1]


def test_a_text_segment_has_to_be_merged_even_alone(new_table: NewTable) -> None:
    base = new_table("pear", "plum")
    raw = base.create_index_uncommitted("id", "INVERTED", name="i", fragment_ids=[0])
    assert all(file.path.startswith("staging/") for file in raw.files)
    merged = base.merge_existing_index_segments([raw])
    base = commit(base, Transaction(base.version, LanceOperation.CreateIndex([merged], [])))
    assert base.to_table(full_text_query={"columns": ["id"], "query": "plum"})["id"].to_pylist() == ["plum"]


def test_a_fuzzy_query_misses_what_a_text_index_does_not_cover(new_table: NewTable) -> None:
    base = new_table("apple")
    base.create_scalar_index("id", "INVERTED")
    base = lance.dataset(base.uri)
    after = commit(base, append_of(base, "apply"))
    assert after.to_table(full_text_query=MatchQuery("apply", "id"))["id"].to_pylist() == ["apply"]
    assert after.to_table(full_text_query=MatchQuery("appla", "id", fuzziness=1))["id"].to_pylist() == ["apple"]


def test_scanned_blob_descriptors_cannot_be_written_back(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string()), blob_field("b")])
    table = lance.write_dataset(
        pa.table({"id": ["a"], "b": blob_array([b"x"])}, schema=schema), str(tmp_path / "t"), data_storage_version="2.2"
    )
    with pytest.raises((OSError, ValueError)):
        write_fragments(table.to_table(), table)
    assert table.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == [b"x"]


def test_a_schema_pickles_as_its_metadata_and_one_message_per_field(new_table: NewTable) -> None:
    schema = new_table("a").lance_schema
    rebuild, (metadata, *fields) = schema.__reduce__()
    assert metadata == "{}"
    assert len(fields) == 2
    assert all(isinstance(field, bytes) for field in fields)
    assert rebuild(metadata, *fields) == schema
    assert LanceSchema._from_protos(metadata, *fields) == schema


def test_the_highest_field_id_outlives_a_dropped_column(new_table: NewTable) -> None:
    base = new_table("a")
    assert base.max_field_id == 1
    base.drop_columns(["v"])
    assert lance.dataset(base.uri).max_field_id == 1


def test_a_projection_conflicts_with_a_change_of_rows_either_way(new_table: NewTable) -> None:
    from lance.commit import CommitConflictError

    for first in ("projection", "rows"):
        base = new_table("a")
        staged = {
            "projection": Transaction(base.version, LanceOperation.Project(base.lance_schema)),
            "rows": upsert_of(base, "a"),
        }
        commit(base, staged.pop(first))
        with pytest.raises(CommitConflictError):
            commit(base, next(iter(staged.values())))


def test_importing_lance_warns_about_forks() -> None:
    """Workers import Lance inside their functions because of this."""
    assert "fork" in Path(lance.__file__).read_text()
