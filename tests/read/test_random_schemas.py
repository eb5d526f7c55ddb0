"""Random schemas, graphs of them, queries over those: the executor agrees with the reference evaluator."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from omnigraph.config import override
from omnigraph.query.bind import bind_parameters
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.schema.ids.identity import edge_id, node_id
from omnigraph.schema.types import PropertyType, Scalar, ScalarType, VectorType, is_blob
from tests.read.graphs import Database, arrow_tables
from tests.read.reference import Reference
from tests.read.test_agreement import same
from tests.strategies.queries import pool, read_queries
from tests.strategies.schemas import catalogs

IDS = ("a", "B", "é", "\uffff", "\U0001d11e")


def stored(value: Any, type_: PropertyType) -> Any:
    """A value as its column holds it: 32-bit floats are rounded."""
    if type_ == ScalarType(Scalar.F32):
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if isinstance(type_, VectorType):
        return [struct.unpack("<f", struct.pack("<f", item))[0] for item in value]
    return list(value) if isinstance(value, tuple | list) else value


@st.composite
def rows_of(draw: st.DrawFn, graph_type: GraphType) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for prop in graph_type.properties:
        if is_blob(prop.type):
            row[prop.name] = None if prop.nullable else b"x"
        elif prop.nullable and draw(st.booleans()):
            row[prop.name] = None
        else:
            row[prop.name] = stored(draw(pool(prop.type)), prop.type)
    return row


@st.composite
def databases_of(draw: st.DrawFn, catalog: Catalog) -> Database:
    database: Database = {}
    for node_type in catalog.nodes:
        assert isinstance(node_type, NodeType)
        made: dict[str, dict[str, Any]] = {}
        for at in range(draw(st.integers(0, 4))):
            row = draw(rows_of(node_type))
            id_ = node_id(node_type, row) or IDS[at]
            made[id_] = {"id": id_, **row}
        database[node_type.table_key] = list(made.values())
    for edge_type in catalog.edges:
        database[edge_type.table_key] = draw(edges_of(edge_type, database))
    return database


@st.composite
def edges_of(draw: st.DrawFn, edge_type: EdgeType, database: Database) -> list[dict[str, Any]]:
    sources = [row["id"] for row in database[f"node:{edge_type.source}"]]
    targets = [row["id"] for row in database[f"node:{edge_type.target}"]]
    made: dict[str, dict[str, Any]] = {}
    for at in range(draw(st.integers(0, 6)) if sources and targets else 0):
        src, dst, row = draw(st.sampled_from(sources)), draw(st.sampled_from(targets)), draw(rows_of(edge_type))
        id_ = edge_id(edge_type, src, dst, row) or f"e{at}"
        made[id_] = {"id": id_, "src": src, "dst": dst, **row}
    return list(made.values())


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), catalog=catalogs())
def test_executor_and_reference_agree_on_any_schema(data, catalog):
    database = data.draw(databases_of(catalog))
    query = data.draw(read_queries(catalog, max_hops=3))
    compiled = compile_query(query.source, catalog)
    parameters = bind_parameters(compiled.parameters, query.params)
    expected = Reference(catalog, database, parameters).run(compiled)
    for mode in ("csr", "indexed"):
        with override(traversal_mode=mode):
            result = run_on(ArrowTables(arrow_tables(database, catalog)), catalog, ReadCaches(), compiled, query.params)
            found = result.rows()
        note(f"{query.source}\n{query.params}\n{result.explain()}\nfound    {found}\nexpected {expected}")
        if "now()" not in query.source:
            assert same(found, expected)
