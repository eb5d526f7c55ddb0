"""The physical tables: Arrow types, column order and the metadata of fields."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from omnigraph.schema.arrow import arrow_type, blob_field, table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType
from tests.schema.sample import edge, node
from tests.strategies.schemas import catalogs


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (ScalarType(Scalar.STRING), pa.utf8()),
        (ScalarType(Scalar.BLOB), pa.large_binary()),
        (ScalarType(Scalar.BOOL), pa.bool_()),
        (ScalarType(Scalar.I32), pa.int32()),
        (ScalarType(Scalar.I64), pa.int64()),
        (ScalarType(Scalar.U32), pa.uint32()),
        (ScalarType(Scalar.U64), pa.uint64()),
        (ScalarType(Scalar.F32), pa.float32()),
        (ScalarType(Scalar.F64), pa.float64()),
        (ScalarType(Scalar.DATE), pa.date32()),
        (ScalarType(Scalar.DATETIME), pa.timestamp("us", tz="UTC")),
        (VectorType(3), pa.list_(pa.float32(), 3)),
        (ListType(Scalar.DATE), pa.list_(pa.date32())),
        (EnumType(("a",)), pa.utf8()),
    ],
)
def test_the_arrow_type_of_every_type(type_: PropertyType, expected: pa.DataType) -> None:
    assert arrow_type(type_) == expected


def test_a_node_table_has_its_id_first_and_then_the_properties_by_id() -> None:
    schema = table_schema(node("node A { b: I32? a: String }", "A"))
    assert schema.names == ["id", "b", "a"]
    assert [schema.field(name).nullable for name in schema.names] == [False, True, False]
    assert schema.field("id").type == pa.utf8()


def test_an_edge_table_has_its_ends_after_the_id() -> None:
    schema = table_schema(edge("node A { } edge E: A -> A { w: F64 }", "E"))
    assert schema.names == ["id", "src", "dst", "w"]
    assert not schema.field("src").nullable
    assert not schema.field("dst").nullable


def test_every_property_carries_its_stable_id() -> None:
    schema = table_schema(node("node A { a: I32 }", "A"))
    assert schema.field("a").metadata == {b"omnigraph.property_id": b"p2"}


def test_only_ids_that_are_made_here_are_packed_by_their_repetitions() -> None:
    source = "node A { } node K { k: String @key } edge E: A -> K { }"
    packed = {b"lance-encoding:compression": b"lz4"}
    assert table_schema(node(source, "A")).field("id").metadata == packed
    assert table_schema(edge(source, "E")).field("id").metadata == packed
    assert table_schema(node(source, "K")).field("id").metadata is None
    assert table_schema(edge(source, "E")).field("src").metadata is None


def test_a_blob_is_marked_for_lance() -> None:
    field = table_schema(node("node A { a: Blob? }", "A")).field("a")
    assert (field.type, field.nullable) == (pa.large_binary(), True)
    assert field.metadata == {b"lance-encoding:blob": b"true", b"omnigraph.property_id": b"p2"}
    assert blob_field("a", False).nullable is False


def test_whoever_stores_blobs_can_choose_their_column() -> None:
    def other(name: str, nullable: bool) -> pa.Field:
        return pa.field(name, pa.struct([("data", pa.large_binary())]), nullable, metadata={"x": "y"})

    field = table_schema(node("node A { a: Blob }", "A"), other).field("a")
    assert pa.types.is_struct(field.type)
    assert field.metadata == {b"x": b"y", b"omnigraph.property_id": b"p2"}


@settings(max_examples=30, deadline=None)
@given(catalogs())
def test_every_catalog_has_tables(catalog: Catalog) -> None:
    for type_ in catalog.types():
        schema = table_schema(type_)
        assert pa.Table.from_pylist([], schema=schema).schema == schema
