"""Raw Lance tables, without any code of ours: these tests pin what the libraries do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import Transaction
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import write_fragments

NewTable = Callable[..., LanceDataset]


def rows(*names: object, value: int = 0) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": [str(name) for name in names], "v": pa.array([value] * len(names), pa.int64())})


def append_of(table: LanceDataset, *names: object) -> Transaction:
    """A staged append."""
    return Transaction(table.version, LanceOperation.Append(write_fragments(rows(*names), table)))


def guarded_append_of(table: LanceDataset, *names: object) -> Transaction:
    """A staged append that also lists the first fragment as touched."""
    operation = LanceOperation.Update(
        new_fragments=write_fragments(rows(*names), table),
        updated_fragments=[table.get_fragments()[0].metadata],
        update_mode="rewrite_rows",
    )
    return Transaction(table.version, operation)


def upsert_of(table: LanceDataset, *names: object, value: int = 1) -> Transaction:
    """A staged upsert by Lance's own merge."""
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute_uncommitted(rows(*names, value=value))[0]


def commit(table: LanceDataset, transaction: Transaction, **options: object) -> LanceDataset:
    """Commit without retries."""
    return LanceDataset.commit(table, transaction, **{"max_retries": 0, **options})


def ids(table: LanceDataset) -> list[str]:
    """The ids in the newest version of the table."""
    return sorted(lance.dataset(table.uri).to_table()["id"].to_pylist())


@pytest.fixture
def new_table(tmp_path: Path) -> NewTable:
    """Makes tables with stable row ids in the file format that supports blobs."""
    made = 0

    def make(*names: object, rows_per_file: int = 1_000_000) -> LanceDataset:
        nonlocal made
        made += 1
        return lance.write_dataset(
            rows(*names),
            str(tmp_path / f"t{made}"),
            enable_stable_row_ids=True,
            data_storage_version="2.2",
            max_rows_per_file=rows_per_file,
        )

    return make
