"""The stored form of catalogs and accepted schemas: deterministic bytes that read back as the same value."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings

from omnigraph.errors import StorageError, StorageKind
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.catalog_json import (
    accepted_schema_bytes,
    accepted_schema_from_bytes,
    catalog_digest,
    catalog_from_json,
    catalog_to_json,
)
from omnigraph.schema.compiler.compile import compile_schema
from tests.schema.sample import SAMPLE
from tests.strategies.schemas import catalogs

DIGEST_OF_SAMPLE = "efbcf89474d8187e91cb4b8bd6f026c0e74a60190fc3eb988e53cf35b22c3560"


@settings(max_examples=50, deadline=None)
@given(catalogs())
def test_a_catalog_reads_back_as_the_same_value(catalog: Catalog) -> None:
    data = catalog_to_json(catalog)
    assert catalog_from_json(data) == catalog
    assert catalog_to_json(catalog_from_json(data)) == data


def test_json_is_compact_sorted_utf8() -> None:
    data = catalog_to_json(compile_schema('node A @note("é") { }'))
    assert (
        data
        == (
            '{"edges":[],"format":1,"interfaces":[],"next_id":2,"nodes":[{"annotations":[{"args":["é"],"name":"note",'
            '"options":{}}],"checks":[],"id":"n1","implements":[],"key":[],"name":"A","properties":[],"ranges":[],'
            '"uniques":[]}]}'
        ).encode()
    )


def test_the_same_schema_gives_the_same_bytes_in_another_process() -> None:
    program = (
        "import sys; from omnigraph.schema.compiler.compile import compile_schema;"
        "from omnigraph.schema.catalog_json import catalog_digest;"
        "source = sys.stdin.read(); print(catalog_digest(compile_schema(source), source))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=SAMPLE,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {DIGEST_OF_SAMPLE}


def test_the_digest_of_the_sample_never_changes() -> None:
    assert catalog_digest(compile_schema(SAMPLE), SAMPLE) == DIGEST_OF_SAMPLE


def test_the_order_of_declarations_and_values_does_not_reach_the_catalog() -> None:
    first = compile_schema("node A { a: enum(y, x) @unique(a) } node B { } edge E: A -> B edge F: B -> A")
    second = compile_schema("edge F: B -> A edge E: A -> B node B { } node A { a: enum(x, y, x) @unique }", first)
    assert catalog_to_json(second) == catalog_to_json(first)


def test_the_digest_covers_source_and_ids() -> None:
    catalog = compile_schema("node A { }")
    other_ids = compile_schema("node A { }", Catalog((), (), (), 7))
    assert catalog_digest(catalog, "node A { }") != catalog_digest(catalog, "node A { } // said otherwise")
    assert catalog_digest(catalog, "node A { }") != catalog_digest(other_ids, "node A { }")


def test_numbers_keep_their_kind() -> None:
    source = "node A { i: I32 @default(1) f: F64 @default(1) b: Bool @default(true) @range(f, 0..2) }"
    (node,) = catalog_from_json(catalog_to_json(compile_schema(source))).nodes
    assert [type(p.default) for p in node.properties] == [int, float, bool]
    assert type(node.ranges[0].low) is float


def test_an_accepted_schema_is_source_and_catalog() -> None:
    catalog = compile_schema(SAMPLE)
    data = accepted_schema_bytes(SAMPLE, catalog)
    assert accepted_schema_from_bytes(data) == (SAMPLE, catalog)
    assert set(json.loads(data)) == {"catalog", "source"}


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b'{"format":99}', b'{"edges":[],"format":1,"interfaces":[],"next_id":1,"nodes":[3]}'],
)
def test_bytes_that_are_no_catalog_are_refused_in_our_words(data: bytes) -> None:
    for read in (catalog_from_json, accepted_schema_from_bytes):
        with pytest.raises(StorageError, match=r"stored bytes are not an? (catalog|accepted schema)") as caught:
            read(data)
        assert caught.value.storage_kind is StorageKind.PERMANENT
