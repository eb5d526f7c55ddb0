"""Input without rows, and headers: what an overwrite of nothing means, and that no line is taken for a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import BadRequest, ValidationFailed
from omnigraph.ledger.store import GraphStore
from omnigraph.write.load.load import load
from tests.write.graphs import edge, fill, ids, person, rows


def _empty_inputs(folder: Path) -> list[Any]:
    table = pa.table({"slug": pa.array([], pa.string()), "age": pa.array([], pa.int32())})
    pq.write_table(table, folder / "people.parquet")
    (folder / "people.csv").write_text("slug,age\n")
    (folder / "people.tsv").write_text("slug\tage")
    frames = [table, table.to_pandas(), pl.from_arrow(table), pd.DataFrame(), []]
    return [*frames, folder / "people.parquet", folder / "people.csv", folder / "people.tsv"]


def test_an_overwrite_without_rows_empties_the_named_type(store: GraphStore, tmp_path: Path):
    for data in _empty_inputs(tmp_path):
        fill(store, person("a"), person("b"), mode="overwrite")
        result = load(store, data, type="Person", mode="overwrite")
        assert ids(store, "node:Person") == []
        assert result.commit is not None
        assert [(table.table_key, table.rows_loaded) for table in result.tables] == [("node:Person", 0)]
        assert load(store, data, type="Person", mode="overwrite").commit is None


def test_an_overwrite_without_rows_leaves_no_edge_dangling(store: GraphStore):
    fill(store, person("a"), person("b"), edge("Knows", "a", "b"))
    with pytest.raises(ValidationFailed) as failed:
        load(store, [], type="Person", mode="overwrite")
    assert failed.value.counts == {"dangling_edge": 2}
    load(store, [], type="Knows", mode="overwrite")
    load(store, [], type="Person", mode="overwrite")
    assert (ids(store, "node:Person"), ids(store, "edge:Knows")) == ([], [])


def test_an_overwrite_without_rows_and_type_is_refused(store: GraphStore, tmp_path: Path):
    fill(store, person("a"))
    (tmp_path / "none.jsonl").write_text("\n")
    for data in (tmp_path / "none.jsonl", b"", []):
        with pytest.raises(BadRequest, match="names no type"):
            load(store, data, mode="overwrite")
    assert load(store, b"", mode="append").commit is None
    assert ids(store, "node:Person") == ["a"]


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_line_without_a_header_is_not_lost(store: GraphStore, tmp_path: Path, mode: str):
    path = tmp_path / "people.csv"
    path.write_text("ada,36\n")
    with pytest.raises(BadRequest, match=r"people.csv: the column `ada` is no property of Person.*first line of the"):
        load(store, path, type="Person", mode=mode)
    path.write_text("slug,aeg\n")
    with pytest.raises(BadRequest, match="did you mean `age`"):
        load(store, path, type="Person", mode=mode)
    path.write_text("")
    with pytest.raises(BadRequest, match=r"people\.csv is empty"):
        load(store, path, type="Person", mode=mode)
    pq.write_table(pa.table({"ada": pa.array([], pa.string())}), tmp_path / "people.parquet")
    with pytest.raises(BadRequest, match="no property of Person"):
        load(store, tmp_path / "people.parquet", type="Person", mode=mode)
    with pytest.raises(BadRequest, match="no column gives the `src`"):
        load(store, pa.table({"since": pa.array([], pa.date32())}), type="Knows", mode=mode)


def test_one_column_may_name_both_ends_of_an_edge(store: GraphStore):
    fill(store, person("a"), person("b"))
    load(store, pa.table({"who": ["a", "b"]}), type="Knows", mode="append", src="who", dst="who")
    assert sorted((row["src"], row["dst"]) for row in rows(store, "edge:Knows")) == [("a", "a"), ("b", "b")]
