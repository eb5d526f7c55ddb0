"""Small files come together in one task; what is large, or a part of a file, stays by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import SparkJobFailed, ValidationFailed
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import create_store
from omnigraph.spark.load import load_input, load_splits
from omnigraph.spark.load.load_splits import SMALLEST_SPLIT, Split, groups_of, plan_splits
from omnigraph.write.decode.files import InputFile, named_files

MEGABYTE = 1 << 20


def splits(*sizes: int, suffix: str = ".jsonl") -> list[Split]:
    return [Split(n, InputFile(f"f{n:04d}{suffix}", size, f"/f{n}")) for n, size in enumerate(sizes)]


def sizes(groups: list[list[Split]]) -> list[list[int]]:
    return [[split.file.size for split in group] for group in groups]


def test_small_files_come_together_in_their_order() -> None:
    given = splits(*[100_000] * 2000)
    groups = groups_of(given, cores=2)
    assert 8 <= len(groups) <= 9
    assert [split for group in groups for split in group] == given


def test_groups_of_rows_come_together_until_each_core_has_two_splits_or_they_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(
        pa.table({"n": np.random.default_rng(1).random(16_000)}), tmp_path / "a.parquet", row_group_size=1_000
    )
    files = named_files(str(tmp_path / "a.parquet"))
    assert files is not None
    monkeypatch.setattr(load_splits, "SMALLEST_SPLIT", 1)
    assert [split.row_groups for split in plan_splits(files, 2)] == [tuple(range(n, n + 4)) for n in (0, 4, 8, 12)]
    assert [split.first_record for split in plan_splits(files, 2)] == [1, 4001, 8001, 12001]
    monkeypatch.setattr(load_splits, "ENOUGH_COLUMNS", 1)
    assert len(plan_splits(files, 2)) > 4


def test_large_files_and_parts_stay_alone() -> None:
    large = splits(SMALLEST_SPLIT, SMALLEST_SPLIT, 10, 10)
    parts = [Split(n, large[0].file, n, n + 1) for n in range(3)]
    assert sizes(groups_of(large, cores=1)) == [[SMALLEST_SPLIT], [SMALLEST_SPLIT], [10], [10]]
    assert [len(group) for group in groups_of(parts, cores=1)] == [1, 1, 1]


def test_a_compressed_file_counts_for_what_is_in_it() -> None:
    plain, packed = (splits(*[100 * MEGABYTE] * 8, suffix=suffix) for suffix in (".jsonl", ".jsonl.gz"))
    assert [len(groups_of(given, cores=1)) for given in (plain, packed)] == [4, 8]


def write_files(place: Path, files: int) -> None:
    place.mkdir()
    for n in range(files):
        record = {"type": "Person", "data": {"slug": f"p{n}"}}
        (place / f"{n:03d}.jsonl").write_text(json.dumps(record) + "\n")


@pytest.mark.spark
def test_many_small_files_make_few_fragments_and_a_bad_record_is_named_by_its_file(spark: Any, tmp_path: Path) -> None:
    from omnigraph.spark.load.load import load

    write_files(tmp_path / "in", 40)
    files = named_files(str(tmp_path / "in"))
    assert files is not None
    assert len(plan_splits(files, 2)) == 40
    with create_store(str(tmp_path / "g.omni"), "node Person { slug: String @key }") as store:
        assert load(spark, store, str(tmp_path / "in"), mode="append").rows_loaded == 40
        fragments = store.tables.fragments(table_of(store.snapshot().pin("node:Person")))
        assert len(fragments) == 8
        with pytest.raises(ValidationFailed) as caught:
            load(spark, store, str(tmp_path / "in"), mode="append")
        assert len(caught.value.violations) > 3
        for violation in caught.value.violations:
            assert violation.kind == "existing_id"
            assert f'"{violation.row_id}"' in Path(violation.source or "").read_text()
        (tmp_path / "in" / "017.jsonl").write_text('{"type": "Person", "data": {"slug": "q", "shoe": 1}}\n')
        with pytest.raises(ValidationFailed) as caught:
            load(spark, store, str(tmp_path / "in"), mode="merge")
        (violation,) = caught.value.violations
        assert (Path(violation.source or "").name, violation.record) == ("017.jsonl", 1)


def test_a_failure_inside_a_group_names_the_file_once() -> None:
    from omnigraph.spark.spread import placed

    with pytest.raises(SparkJobFailed) as caught, placed("a.jsonl and 3 more files"), placed("c.jsonl"):
        raise OSError("cannot read")
    assert caught.value.message == "c.jsonl: OSError: cannot read"


@pytest.mark.parametrize(("size", "cores", "buckets"), [(1, 2, 2), (2, 2, 2), (3, 2, 4), (9, 4, 12), (7, 1, 7)])
def test_every_core_gets_as_many_buckets_of_keys(size: int, cores: int, buckets: int) -> None:
    """With three buckets on two cores, one core would check the last of them while the other waits."""
    assert load_input._buckets(size * load_input.BUCKET_BYTES, cores) == buckets
