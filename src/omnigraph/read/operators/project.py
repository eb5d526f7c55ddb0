"""The returned columns, made for a stretch of rows at a time: only rows that survived everything else are looked up."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.arrow_types import result_type, shown_properties
from omnigraph.schema.types import EntityType


def project(run: Run, frame: Frame, columns: tuple[ir.Column, ...], schema: pa.Schema) -> pa.RecordBatch:
    """The columns of these rows, with the types that the query promises."""
    _fetch_together(run, frame, columns)
    arrays = [_column(run, frame, column) for column in columns]
    arrays = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fetch_together(run: Run, frame: Frame, columns: tuple[ir.Column, ...]) -> None:
    """Look up the plain properties of each variable in one go; what is kept from it is read again below."""
    wanted: dict[str, list[str]] = {}
    for column in columns:
        if isinstance(column.expr, ir.Prop):
            wanted.setdefault(column.expr.var, []).append(column.expr.name)
        elif isinstance(column.expr, ir.Entity):
            names = [p.name for p in shown_properties(run.catalog, run.tables[column.expr.var])]
            wanted.setdefault(column.expr.var, []).extend(names)
    for var, names in wanted.items():
        run.space_of(var).prefetch(frame.bindings[var], names)


def _column(run: Run, frame: Frame, column: ir.Column) -> pa.Array:
    match column.expr:
        case ir.Entity(var=var):
            return entities(run, run.tables[var], frame.bindings[var])
        case ir.ColumnRef(name=name) if isinstance(computed := frame.columns[name], EntityCodes):
            return entities(run, computed.table_key, computed.codes)
        case ir.ColumnRef(name=name):
            return frame.columns[name]
        case ir.Literal(value=None):
            return pa.nulls(frame.length, result_type(column.type, run.catalog))
        case _:
            return run.evaluate(column.expr, frame)


def entities(run: Run, table_key: str, codes: Codes) -> pa.StructArray:
    """Entities as structs of `@id` and their properties."""
    shown = shown_properties(run.catalog, table_key)
    space = run.space(table_key)
    names = [p.name for p in shown]
    arrays = [space.ids(codes), *space.columns(codes, names)]
    type_ = result_type(EntityType(table_key), run.catalog)
    typed = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, type_, strict=True)
    ]
    return pa.StructArray.from_arrays(typed, fields=list(type_))
