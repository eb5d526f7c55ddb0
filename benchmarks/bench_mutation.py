"""The latency of a one-row mutation against the bare Lance commits that it has to make."""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import count
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from benchmarks.harness import Row, measure
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate

SCHEMA = """
node Person {
    slug: String @key
    name: String?
    age: I32?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
INSERT = "query q($s: String) { insert Person { slug: $s, age: 7 } }"
LINK = 'query q($a: String) { insert Knows { from: $a, to: "p1" } }'
UPDATE = 'query q($a: I32) { update Person set { age: $a } where slug = "p7" }'
GOAL = "within 1.3 times the bare commits"


class BareCommits:
    """Three small datasets, and what Lance alone takes to commit to each: a table, a manifest, a log."""

    def __init__(self, directory: str, table: pa.Table, storage_options: dict[str, str] | None = None) -> None:
        def make(rows: pa.Table, name: str) -> Any:
            where = f"{directory}/{name}"
            return lance.write_dataset(rows, where, enable_stable_row_ids=True, storage_options=storage_options)

        self._row = table.slice(7, 1)
        self._table = make(table, "table")
        manifest = pa.table({"object_id": [f"table:{n}" for n in range(8)] + ["graph_head"], "version": list(range(9))})
        self._manifest = make(manifest, "manifest")
        self._changed = manifest.slice(7, 2)
        log = pa.table({"id": ["0"], "commit": ["x" * 300]})
        self._log = make(log, "log")
        self._log_row = log

    def insert(self) -> None:
        """One row into the table, two rows of the manifest, one row of the log."""
        self._table = self._append(self._table, self._row)
        self._publish()

    def update(self) -> None:
        """One row of the table, found by its id; two rows of the manifest, one row of the log."""
        self._table = self._upsert(self._table, "id", self._row)
        self._publish()

    def _publish(self) -> None:
        self._manifest = self._upsert(self._manifest, "object_id", self._changed)
        self._log = self._append(self._log, self._log_row)

    def _upsert(self, dataset: Any, key: str, rows: pa.Table) -> Any:
        upsert = dataset.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
        transaction, _ = upsert.execute_uncommitted(rows)
        return LanceDataset.commit(dataset, transaction)

    def _append(self, dataset: Any, rows: pa.Table) -> Any:
        fragments = write_fragments(rows, dataset)
        return LanceDataset.commit(dataset, Transaction(dataset.version, LanceOperation.Append(fragments)))


def run(rows: int = 10_000) -> list[Row]:
    """A one-row insert, an edge, and an update of one row by its key, each against the bare commits."""
    with tempfile.TemporaryDirectory() as directory:
        store = create_store(f"{directory}/graph", SCHEMA)
        load(store, [{"slug": f"p{n}", "age": n % 90} for n in range(rows)], type="Person", mode="append")
        numbers = count()
        table = pa.table(
            {"id": [f"p{n}" for n in range(rows)], "slug": [f"p{n}" for n in range(rows)], "age": [7] * rows}
        )

        def ours(query: str, **params: Any) -> Any:
            return lambda: mutate(store, query, params={k: v() for k, v in params.items()})

        cases = [
            ("insert of one node", ours(INSERT, s=lambda: f"new-{next(numbers)}"), BareCommits.insert),
            ("insert of one edge", ours(LINK, a=lambda: f"p{next(numbers) % rows}"), BareCommits.insert),
            ("update of one node by its key", ours(UPDATE, a=lambda: next(numbers) % 140), BareCommits.update),
        ]
        results = []
        for position, (name, action, commits) in enumerate(cases):
            bare = BareCommits(f"{directory}/bare{position}", table)
            results.append(measure(name, action, partial(commits, bare), GOAL, repeats=40, warm_up=3))
        _close(store)
        return results


def _close(store: GraphStore) -> None:
    store.close()


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run()))
