"""What merge and diff lean on when they follow the lineage of rows, and when a line takes files of another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import lance
import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

CREATED, UPDATED = "_row_created_at_version", "_row_last_updated_at_version"


def _table(tmp_path: Path) -> LanceDataset:
    rows = pa.table({"id": [f"r{number}" for number in range(10)], "value": list(range(10))})
    return lance.write_dataset(
        rows, str(tmp_path / "t"), data_storage_version="2.2", enable_stable_row_ids=True, max_rows_per_file=5
    )


def _upsert(table: LanceDataset, *ids: str, value: int) -> LanceDataset:
    rows = pa.table({"id": list(ids), "value": [value] * len(ids)})
    transaction, _ = (
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute_uncommitted(rows)
    )
    return LanceDataset.commit(table, transaction)


def _fork(table: LanceDataset, name: str) -> LanceDataset:
    table.create_branch(name, (None, table.version))
    return lance.dataset(f"{table.uri}/tree/{name}")


def test_changed_rows_lie_in_new_fragments_and_their_lineage_tells_them(tmp_path: Path) -> None:
    table = _table(tmp_path)
    known = set(table.fragment_ids())
    start = table.version
    after = _upsert(_upsert(table, "r1", "new", value=50), "r7", value=60)
    fresh = [fragment for fragment in after.get_fragments() if fragment.fragment_id not in known]

    def ids(condition: str) -> set[str]:
        found = after.scanner(columns=["id"], filter=condition, fragments=fresh, with_row_id=True).to_table()
        return set(found["id"].to_pylist())

    assert ids(f"{UPDATED} > {start} AND {CREATED} <= {start}") == {"r1", "r7"}
    assert ids(f"{CREATED} > {start}") == {"new"}
    everywhere = after.scanner(columns=["id"], filter=f"{UPDATED} > {start}").to_table()["id"].to_pylist()
    assert set(everywhere) == {"r1", "r7", "new"}


def test_row_ids_and_versions_go_on_in_a_fork(tmp_path: Path) -> None:
    table = _table(tmp_path)
    fork = _fork(table, "side")
    assert fork.version == table.version
    assert set(fork.fragment_ids()) == set(table.fragment_ids())
    changed = _upsert(fork, "r3", value=70)
    assert changed.version == table.version + 1
    columns = ["id", "_rowid"]
    rows = {row["id"]: row["_rowid"] for row in table.to_table(columns=columns).to_pylist()}
    assert {row["id"]: row["_rowid"] for row in changed.to_table(columns=columns).to_pylist()} == rows
    (found,) = changed.to_table(columns=["id"], filter=f"{UPDATED} > {table.version}").to_pylist()
    assert found["id"] == "r3"


def test_rows_taken_by_row_id_tell_their_addresses(tmp_path: Path) -> None:
    table = _table(tmp_path)
    found = table._take_rows(pa.array([7, 0], pa.uint64()), ["id", "_rowid", "_rowaddr"]).to_pylist()
    assert [(row["id"], row["_rowid"], row["_rowaddr"]) for row in found] == [("r7", 7, (1 << 32) + 2), ("r0", 0, 0)]


def test_a_file_of_a_fork_can_be_taken_by_its_parent_under_another_name(tmp_path: Path) -> None:
    table = _table(tmp_path)
    fork = _fork(table, "side")
    added = pa.table({"id": ["x", "y"], "value": [1, 2]})
    fork = lance.write_dataset(added, fork, mode="append", data_storage_version="2.2")
    described = fork.get_fragments()[-1].metadata.to_json()
    (file,) = described["files"]
    assert file["base_id"] is None
    os.link(tmp_path / "t/tree/side/data" / file["path"], tmp_path / "t/data/taken.lance")
    taken = {"id": 0, "files": [{**file, "path": "taken.lance"}], "physical_rows": 2, "deletion_file": None}
    operation = LanceOperation.Update(
        new_fragments=[FragmentMetadata.from_json(json.dumps(taken))], update_mode="rewrite_rows"
    )
    after = LanceDataset.commit(table, lance.Transaction(table.version, operation))
    table.branches.delete("side")
    rows = after.to_table(columns=["id", "value", "_rowid", CREATED], filter=f"{CREATED} > {table.version}").to_pylist()
    assert [(row["id"], row["value"], row["_rowid"], row[CREATED]) for row in rows] == [
        ("x", 1, 10, after.version),
        ("y", 2, 11, after.version),
    ]


def test_numbers_of_fragments_and_rows_are_never_given_out_again(tmp_path: Path) -> None:
    table = _table(tmp_path)
    seen, rows = set(table.fragment_ids()), set(range(10))
    for operation in ("overwrite", "empty and append"):
        if operation == "overwrite":
            written = lance.fragment.write_fragments(pa.table({"id": ["r0"], "value": [1]}), table)
            overwrite = LanceOperation.Overwrite(table.lance_schema, written)
            table = LanceDataset.commit(table, lance.Transaction(table.version, overwrite), max_retries=0)
        else:
            table.delete("true")
            table = lance.write_dataset(pa.table({"id": ["r0"], "value": [2]}), table.uri, mode="append")
        assert seen.isdisjoint(table.fragment_ids()), operation
        given = set(table.to_table(columns=["_rowid"])["_rowid"].to_pylist())
        assert rows.isdisjoint(given), operation
        seen |= set(table.fragment_ids())
        rows |= given
